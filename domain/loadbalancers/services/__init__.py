"""The Service's side: requests of a Service of type LoadBalancer, and its status and Events."""
