"""What is done for EC2 instances: looks at their objects, questions to AWS, hooks, Nodes, and the sweep."""
