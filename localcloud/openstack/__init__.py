"""The local OpenStack: real Keystone, Placement, Glance, Neutron and Nova, without machines.

    mariadb ──┬── keystone ──┐
              ├── placement  │
              ├── glance     ├── openstack (once: image, flavors, networks)
              ├── neutron    │
              └── nova ──────┘

The services are unchanged releases from PyPI, in an environment that `build` creates once per computer; `database`
provides MariaDB. There is no message broker (Nova's services share a process), no agents (small plugins bind ports and
activate floating IPs), and no hypervisor (Nova's fake driver). `inside/perdure_openstack` runs in that environment: it
must not import our packages, nor be imported.

`front` precedes each API: it counts and disturbs clients' calls, and serves a control API under `/perdure/`. `control`
is its typed client, `contract` its shapes. `configuration` writes the services' files; `control_plane` has their
command lines.
"""
