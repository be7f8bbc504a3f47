"""OpenStack: Keystone, Neutron, Nova and Glance, as the load balancers' lifecycles use them.

| file | holds |
|---|---|
| `errors.py` | the mapping of OpenStack's answers to `engine.errors` |
| `credentials.py` | a Secret's `cloudprovider.conf`, as yawol reads it |
| `call_limits.py` | the limits of one project: concurrent calls, calls a second, a circuit breaker |
| `call_metrics.py` | counts calls, under yawol's name and under our own |
| `session.py` | one token per credential; a project's calls |
| `projects.py` | which projects are called: by the Secrets that LoadBalancers name |
| `responses.py` | answers as the domain's objects |
| `observation.py` | the objects of a load balancer or machine in its project; a whole project at once |
| `images_and_flavors.py` | flavors and images by name |
| `steps.py` | every step of `domain.loadbalancers.cloud.steps`, repeatable |
| `server_user_data.py` | a machine's user data |

The calls are written out over `keystoneauth1`, one request each, since the SDK's own services ask for versions first
and hide that an object is absent.
"""
