"""yawollet, the agent inside a load balancer's machine: it configures Envoy and reports the machine's state.

LoadBalancer ──watch──► pass ──► snapshot ──ADS──► Envoy (conversation.py, ads.py, delivery.py)
                             ▲ │ │
               every 30 s ───┘ │◄── accepted, refused ──┘
                                ▼
    LoadBalancerMachine ◄── conditions, metrics (conditions.py, measurements.py)

It replaces yawol's agent of the same name. Flags, ports, conditions, metrics and Events are the same, so both agents
run in the same machine image and work with both controllers.
"""
