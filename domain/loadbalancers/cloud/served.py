from __future__ import annotations

from domain.loadbalancers.resources import DebugSettings, LoadBalancer
from domain.model import Model


class ServedBalancer(Model):
    """The parts of a LoadBalancer that its machines depend on. `group_id` is empty until the security group exists."""

    uid: str
    group_id: str = ""
    debug: DebugSettings = DebugSettings()

    @classmethod
    def of(cls, balancer: LoadBalancer) -> ServedBalancer:
        return cls(
            uid=balancer.metadata.uid, group_id=balancer.status.group_id or "", debug=balancer.spec.debug_settings
        )
