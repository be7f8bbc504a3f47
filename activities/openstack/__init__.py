"""OpenStack: Keystone, Neutron, Nova and Glance, as the load balancers' lifecycles use them.

Each call is one request, made with `keystoneauth1`: the SDK's own services first ask for versions, and hide that an
object is absent.
"""
