"""What the account area observes, and its passes that are one activity."""
