"""What every process stands on: settings, Temporal, the Kubernetes client, errors, telemetry. It knows no area."""
