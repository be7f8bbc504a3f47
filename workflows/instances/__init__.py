"""EC2 instances in time: a workflow for each instance and each Auto Scaling group, and one that looks at all places."""
