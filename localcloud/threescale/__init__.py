"""The 3scale simulator: the Account Management and Master APIs, as far as provisioning programs use them.

It follows 3scale's public documentation and what clients observe. Gateway traffic, billing, portal and statistics are
left out. One process serves a master and its tenants, each on its own port.
"""
