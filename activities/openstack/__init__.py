"""OpenStack: Keystone, Neutron, Nova and Glance, as the load balancers' lifecycles use them.

Requests are sent with `keystoneauth1`. openstacksdk's own calls are not used: they first request API versions, and
hide that an object is absent.
"""
