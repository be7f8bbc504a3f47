"""The activities for EC2 instances: passes over their objects, queries to AWS, hooks, Nodes, and the sweep."""
