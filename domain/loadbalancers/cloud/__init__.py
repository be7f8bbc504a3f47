"""The OpenStack side: the objects of a load balancer and its machines, their differences from the desired state, and
steps.

`objects.py` is the observation, `steps.py` has the actions. `rules.py`, `load_balancer.py` and `machine.py` compare;
`removal.py` deletes in an order that leaves nothing behind; `ownership.py` distinguishes our objects from others.
"""
