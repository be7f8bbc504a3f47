"""yawollet, the agent inside a load balancer's machine: the LoadBalancer's spec to Envoy, the machine's state back.

    LoadBalancer ──watch──► pass ──► snapshot ──ADS──► Envoy          (conversation.py, ads.py, delivery.py)
                             ▲  │                        │
               every 30 s ───┘  │◄── accepted, refused ──┘
                                ▼
    LoadBalancerMachine ◄── conditions, metrics                       (conditions.py, measurements.py)

It takes the place of yawol's agent of the same name: flags, ports, conditions, metrics and Events are the same, so that
either runs in the machine image and either is read by either controller. What it does better:

- Envoy is not answered before there is something to serve. yawol's agent begins with an empty snapshot, and a running
  Envoy, which keeps its listeners while no agent is there, loses them all when one comes back.
- What Envoy has accepted is kept on disk, and served after a restart even if no API server answers.
- What Envoy refuses is put aside by itself and reported in Envoy's own words; everything else goes on.
"""
