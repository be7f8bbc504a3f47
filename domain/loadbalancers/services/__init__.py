"""The Service's side: what a Service of type LoadBalancer asks for, and what it is told.

`wishes.py` reads the annotations, `endpoints.py` the nodes, `synchronization.py` says what to do for a Service now;
`write_back.py` gives the Service its address.
"""
