"""The local OpenStack: real Keystone, Placement, Glance, Neutron and Nova, without machines.

    mariadb ──┬── keystone ──┐
              ├── placement  │
              ├── glance     ├── openstack (once: image, flavors, networks)
              ├── neutron    │
              └── nova ──────┘

The services are unchanged releases. There is no message broker (Nova's services share a process), no agents (small
plugins bind ports and activate floating IPs), and no hypervisor (Nova's fake driver). `inside/perdure_openstack` runs
in their environment: it must not import our packages, nor be imported. `front` precedes each API.
"""
