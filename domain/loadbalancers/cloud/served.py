"""The parts of a LoadBalancer that its machines depend on."""

from __future__ import annotations

from domain.loadbalancers.resources import DebugSettings, LoadBalancer
from domain.model import Model


class ServedBalancer(Model):
    """A machine's LoadBalancer.

    Attributes:
        uid: the LoadBalancer's.
        group_id: its security group; empty if it does not exist yet.
        debug: its debug settings.
    """

    uid: str
    group_id: str = ""
    debug: DebugSettings = DebugSettings()

    @classmethod
    def of(cls, balancer: LoadBalancer) -> ServedBalancer:
        return cls(
            uid=balancer.metadata.uid, group_id=balancer.status.group_id or "", debug=balancer.spec.debug_settings
        )
