"""The Service's side: what a Service of type LoadBalancer asks for, and what it is told.

| file | says |
|---|---|
| `objects.py` | what of Services and Nodes matters, and what an installation gives to all its Services |
| `wishes.py`, `keeping.py` | what the annotations ask for; what one that cannot be read leaves as it was |
| `endpoints.py` | which nodes answer |
| `synchronization.py` | what to do for a Service now |
| `write_back.py`, `standing.py` | the address, and what else stands in the Service's status |
| `lifecycle.py`, `world.py` | what is done now, and what the decision sees |
"""
