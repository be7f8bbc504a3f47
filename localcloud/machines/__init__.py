"""The machine host: load balancers' machines as local processes, booted from their servers' user data.

    Nova's driver ────► ground/servers/ID.json ─────┐            ┌─► machine: Envoy, agent   (machine.py, programs.py)
    Neutron's router ─► ground/floatingips/ID.json ─┼─► host ────┼─► keepalived: the election           (vrrp.py)
    faults, set through HTTP ───────────────────────┘ (host.py)  └─► router: clients' bytes to the master (router.py)

The router owns virtual and floating addresses, and forwards connections under the client's address, so that source
ranges work. The machines' processes die with the host, and a restarted host starts them again.
"""
