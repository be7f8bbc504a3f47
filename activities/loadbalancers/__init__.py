"""What the load balancers area observes, and its passes that are a single activity."""
