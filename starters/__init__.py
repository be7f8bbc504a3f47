"""What starts or wakes workflows: `watch` (Kubernetes), `events` (EC2), `cli` (people); and the codec server."""
