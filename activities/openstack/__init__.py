"""OpenStack: Keystone, Neutron, Nova and Glance, as the load balancers' lifecycles use them.

| file | holds |
|---|---|
| `errors.py` | the one mapping of what OpenStack answers to `engine.errors` |
| `credentials.py` | a Secret's `cloudprovider.conf`, as yawol reads it |
| `guard.py` | what one project may take of a process: calls at once, calls a second, a circuit breaker |
| `counting.py` | every call counted, under yawol's name and under our own |
| `session.py` | one token per credential; a project's calls |
| `projects.py` | which projects are called: by the Secrets that LoadBalancers name |
| `reading.py` | answers as the domain's objects |
| `observing.py` | what a load balancer or a machine has in its project; a whole project at once |
| `catalogue.py` | flavors and images by name |
| `steps.py` | every step of `domain.loadbalancers.cloud.steps`, carried out so that it may be repeated |
| `births.py` | a machine's user data, made when its server is |

There is no OpenStack SDK between: `keystoneauth1`, on which the SDK rests too, brings tokens, catalog and connections;
the calls themselves are written out, one request each. The SDK would ask every service for its versions first, and
hides an object's absence where it must be told.
"""
