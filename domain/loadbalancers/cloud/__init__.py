"""The OpenStack side: what a load balancer and its machines own there, what differs from what should be, and the steps.

`objects.py` is what is observed, `steps.py` what can be done. `rules.py`, `load_balancer.py` and `machine.py` compare
the two; `removal.py` takes all of it away in an order in which nothing is left. `ownership.py` tells ours from others'.
"""
