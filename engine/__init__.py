"""The base of every process: settings, Temporal, the Kubernetes client, errors, telemetry. It knows no area."""
