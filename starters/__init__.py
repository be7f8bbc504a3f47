"""What starts or wakes workflows: `watch` (Kubernetes), `cli` (people)."""
