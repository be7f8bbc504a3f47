"""Neutron without agents: every port is bound at once, a floating address ACTIVE exactly while it leads somewhere.

In a cloud an agent on the machine's host wires a port and reports it, and the L3 agent reports floating addresses. Here
an ML2 mechanism driver, found through the entry point that `build` writes, binds whatever it is asked to, and the stock
L3 plugin is extended by the report that the agent would send. Where each floating address leads is written down in
`ground`, for the machine host to lead clients there.
"""

from __future__ import annotations

from typing import Any

from neutron.services.l3_router import l3_router_plugin
from neutron_lib.plugins.ml2 import api

from . import ground


class EveryHost(api.MechanismDriver):
    """Binds every port, ACTIVE, as if an agent were on every host."""

    def initialize(self) -> None:
        """Nothing to prepare."""

    def bind_port(self, context: Any) -> None:
        """Bind it to the first segment that is offered."""
        for segment in context.segments_to_bind:
            context.set_binding(segment[api.ID], "ovs", {"port_filter": True}, status="ACTIVE")
            return


class Router(l3_router_plugin.L3RouterPlugin):
    """Reports floating addresses as an L3 agent would."""

    def notify_router_updated(self, *_: Any, **__: Any) -> None:
        """There is no agent to tell."""

    notify_routers_updated = notify_router_deleted = notify_router_updated

    def create_floatingip(self, context: Any, floatingip: Any) -> Any:
        """As the stock plugin, and report it."""
        return self._settle(context, super().create_floatingip(context, floatingip))

    def update_floatingip(self, context: Any, id: str, floatingip: Any) -> Any:
        """As the stock plugin, and report it."""
        return self._settle(context, super().update_floatingip(context, id, floatingip))

    def disassociate_floatingips(self, context: Any, port_id: str, *rest: Any, **named: Any) -> Any:
        """As the stock plugin, and report those that lost their port."""
        lost = self.get_floatingips(context.elevated(), {"port_id": [port_id]})
        routers = super().disassociate_floatingips(context, port_id, *rest, **named)
        for floating_ip in lost:
            self.update_floatingip_status(context.elevated(), floating_ip["id"], "DOWN")
            _lead({**floating_ip, "fixed_ip_address": None})
        return routers

    def delete_floatingip(self, context: Any, id: str) -> Any:
        """As the stock plugin, and lead nowhere any more."""
        deleted = super().delete_floatingip(context, id)
        ground.remove(ground.FLOATING_IPS, id)
        return deleted

    def _settle(self, context: Any, floating_ip: Any) -> Any:
        status = "ACTIVE" if floating_ip["port_id"] else "DOWN"
        if floating_ip["status"] != status:
            self.update_floatingip_status(context.elevated(), floating_ip["id"], status)
            floating_ip["status"] = status
        _lead(floating_ip)
        return floating_ip


def _lead(floating_ip: Any) -> None:
    ground.write(
        ground.FLOATING_IPS,
        floating_ip["id"],
        {
            "id": floating_ip["id"],
            "address": floating_ip["floating_ip_address"],
            "fixed_address": floating_ip["fixed_ip_address"],
        },
    )
