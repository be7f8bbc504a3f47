"""yawollet, the agent inside a load balancer's machine: it configures Envoy and reports the machine's state.

LoadBalancer ──watch──► pass ──► snapshot ──ADS──► Envoy (conversation.py, ads.py, delivery.py)
                             ▲ │ │
               every 30 s ───┘ │◄── accepted, refused ──┘
                                ▼
    LoadBalancerMachine ◄── conditions, metrics (conditions.py, measurements.py)

It replaces yawol's agent of the same name. Flags, ports, conditions, metrics and Events are the same, so each agent
runs in the machine image and works with each controller. Unlike it, this agent never answers Envoy with an empty
snapshot, which would remove all listeners of a running Envoy.
"""
