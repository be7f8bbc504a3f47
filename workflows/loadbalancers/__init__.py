"""Load balancers in time: a workflow for each LoadBalancer, LoadBalancerSet and LoadBalancerMachine."""
