"""The base of every process: settings, Temporal, the Kubernetes client, errors, telemetry. Depends on no area."""
