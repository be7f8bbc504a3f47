"""The OpenStack of the local deployment: Keystone, Placement, Glance, Neutron and Nova themselves, without machines.

    mariadb ──┬── keystone ──┐
              ├── placement  │
              ├── glance     ├── openstack (once: image, flavors, networks)
              ├── neutron    │
              └── nova ──────┘

The services are the released ones, from PyPI, unchanged, in an environment of their own that `build` makes once per
computer; `database` brings MariaDB, from the system or unpacked beside that environment. What a cloud has around its
control plane is left out: no message broker (Nova's services share one process and its memory), no agents (ports are
bound, and floating addresses made ACTIVE, by small plugins), no hypervisor (Nova's own fake driver). What runs inside
that environment lies in `inside/perdure_openstack`: it must not import anything of ours, nor we anything of it.

In front of each API stands `front`: it counts the calls of clients, disturbs them on request, and answers a control
API under `/perdure/`. `control` is the typed client for that; `contract` holds its shapes. `configuration` writes the
services' files and says where everything lies; `control_plane` has their command lines.
"""
