"""What machines rest on of their LoadBalancer."""

from __future__ import annotations

from domain.loadbalancers.resources import DebugSettings, LoadBalancer
from domain.model import Model


class ServedBalancer(Model):
    """A machine's LoadBalancer.

    Attributes:
        uid: the LoadBalancer's.
        group_id: its security group, empty if there is none yet.
        debug: its settings for access to machines.
    """

    uid: str
    group_id: str = ""
    debug: DebugSettings = DebugSettings()

    @classmethod
    def of(cls, balancer: LoadBalancer) -> ServedBalancer:
        """As it was read."""
        return cls(
            uid=balancer.metadata.uid, group_id=balancer.status.group_id or "", debug=balancer.spec.debug_settings
        )
