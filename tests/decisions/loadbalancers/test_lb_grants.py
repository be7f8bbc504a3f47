"""A machine's ServiceAccount, Secret, Role and RoleBinding exist once its access counts as granted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from lb_pass_context import context_on
from memory_kube import MemoryKube

from activities.loadbalancers.machines import MachineActivities
from domain.identity import Key, Kind
from domain.loadbalancers import LOAD_BALANCER_MACHINE
from domain.loadbalancers.machine.world import GrantAccess
from engine.errors import Conflict
from engine.kube import SECRET

NAME = "web-1-abc"
GRANT = GrantAccess(
    key=Key(kind=LOAD_BALANCER_MACHINE.name, namespace="lbs", name=NAME, uid="1"),
    namespace="lbs",
    objects=({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": NAME}},),
    mark="1",
)


class Busy(MemoryKube):
    """Refuses one creation as an API server does whose quota was changed by another request meanwhile."""

    refused = False

    async def create(self, kind: Kind, obj: Mapping[str, Any], namespace: str = "", **more: Any) -> dict[str, Any]:
        if not self.refused:
            self.refused = True
            raise Conflict("Operation cannot be fulfilled on resourcequotas", code="Conflict")
        return await super().create(kind, obj, namespace, **more)


async def test_access_is_not_granted_while_an_object_is_refused_and_missing() -> None:
    kube = Busy()
    machines = MachineActivities(context_on(kube))
    with pytest.raises(Conflict):
        await machines.grant_access(GRANT)
    await machines.grant_access(GRANT)
    await machines.grant_access(GRANT)  # it exists
    assert await kube.get(SECRET, "lbs", NAME)
