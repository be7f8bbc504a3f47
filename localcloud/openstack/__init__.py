"""The local OpenStack: unchanged releases of Keystone, Placement, Glance, Neutron and Nova, without machines.

There is no message broker (Nova's services share a process), no agents (small plugins bind ports and activate floating
IPs), and no hypervisor (Nova's fake driver). `inside/perdure_openstack` runs in the services' environment: it must not
import our packages, nor be imported by them. `front` precedes each API.
"""
