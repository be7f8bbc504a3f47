"""The machine host: load balancers' machines as processes of this computer, booted from their servers' user data.

    Nova's driver ────► ground/servers/ID.json ─────┐            ┌─► machine: Envoy, agent   (machine.py, programs.py)
    Neutron's router ─► ground/floatingips/ID.json ─┼─► host ────┼─► keepalived: who is master            (vrrp.py)
    fares: what is to go wrong ─────────────────────┘ (host.py)  └─► router: clients' bytes to the master (router.py)

It plays what a cloud has and this deployment has not: the hypervisor that starts a guest, cloud-init that reads the
user data (`user_data.py`), the image's init system, keepalived among the machines that share a virtual address, and
the router that leads a floating address there. What carries the bytes is real: one Envoy and one agent a machine, each
with its own directory.

Addresses are real ones, too, since the deployment's networks are loopback ones (`openstack.loopback`). A machine's
Envoy listens on the machine's own fixed address. The virtual address and the floating address belong to the router,
which opens there the ports that the master's Envoy has accepted, and leads every connection to it under the client's
own address, so that source ranges mean something.

The host asks nobody's API: it reads the files that the hypervisor and the router write. All that it starts dies with it
(`tether`), and the next one starts all of it again.
"""
