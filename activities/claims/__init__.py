"""What the claims area observes, and its passes that are one activity."""
