"""OpenStack: Keystone, Neutron, Nova and Glance, as the load balancers' lifecycles use them.

The calls are written out over `keystoneauth1`, one request each, since the SDK's own services ask for versions first
and hide that an object is absent.
"""
