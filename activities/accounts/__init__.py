"""What the account area observes, and its passes that are a single activity."""
