"""yawollet, the agent inside a load balancer's machine: it configures Envoy and reports the machine's state.

    LoadBalancer ──watch──► pass ──► snapshot ──ADS──► Envoy          (conversation.py, ads.py, delivery.py)
                             ▲  │                        │
               every 30 s ───┘  │◄── accepted, refused ──┘
                                ▼
    LoadBalancerMachine ◄── conditions, metrics                       (conditions.py, measurements.py)

It replaces yawol's agent of the same name. Flags, ports, conditions, metrics and Events are the same, so each agent
runs in the machine image and works with each controller. It improves on it:

- It does not answer Envoy before it has something to serve. yawol's agent starts with an empty snapshot, so a running
  Envoy, which keeps its listeners without an agent, loses all of them when the agent returns.
- It keeps on disk what Envoy has accepted, and serves that after a restart even without an API server.
- It sets aside only what Envoy refuses, and reports it in Envoy's own words.
"""
