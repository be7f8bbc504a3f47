"""The 3scale simulator: the Account Management and Master APIs, as far as provisioning programs use them.

The simulator follows 3scale's public documentation and what clients observe. It has no gateway traffic, billing, portal
or statistics. One process serves a master and its tenants, each on its own port.
"""
