"""The local OpenStack: unchanged releases of Keystone, Placement, Glance, Neutron and Nova, without machines.

`inside/perdure_openstack` runs in the services' environment: it must not import our packages, nor be imported by them.
`front.py` there wraps each API, to count and disturb clients' calls.
"""
