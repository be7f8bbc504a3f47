"""OpenStack: Keystone, Neutron, Nova and Glance, as the load balancers' lifecycles use them.

Each call is one request, made with `keystoneauth1`. The SDK's own services are not used: they first ask for versions,
and hide that an object is absent.
"""
