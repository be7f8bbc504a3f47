"""A Service of type LoadBalancer: its requests, status and Events."""
