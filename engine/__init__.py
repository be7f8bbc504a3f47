"""What every process stands on: settings, the Temporal connection and wake, the Kubernetes client, errors, telemetry. No area."""
