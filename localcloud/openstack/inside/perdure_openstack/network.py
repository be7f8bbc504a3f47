"""Neutron without agents: ports are bound at once, and a floating IP is ACTIVE exactly while it is associated."""

from __future__ import annotations

from typing import Any

from neutron.services.l3_router import l3_router_plugin
from neutron_lib.plugins.ml2 import api

from . import ground


class EveryHost(api.MechanismDriver):
    def initialize(self) -> None:
        pass

    def bind_port(self, context: Any) -> None:
        for segment in context.segments_to_bind:
            context.set_binding(segment[api.ID], "ovs", {"port_filter": True}, status="ACTIVE")
            return


class Router(l3_router_plugin.L3RouterPlugin):
    def notify_router_updated(self, *_: Any, **__: Any) -> None:
        pass

    notify_routers_updated = notify_router_deleted = notify_router_updated

    def create_floatingip(self, context: Any, floatingip: Any) -> Any:
        return self._settle(context, super().create_floatingip(context, floatingip))

    def update_floatingip(self, context: Any, id: str, floatingip: Any) -> Any:
        return self._settle(context, super().update_floatingip(context, id, floatingip))

    def disassociate_floatingips(self, context: Any, port_id: str, *rest: Any, **named: Any) -> Any:
        lost = self.get_floatingips(context.elevated(), {"port_id": [port_id]})
        routers = super().disassociate_floatingips(context, port_id, *rest, **named)
        for floating_ip in lost:
            self.update_floatingip_status(context.elevated(), floating_ip["id"], "DOWN")
            _lead({**floating_ip, "fixed_ip_address": None})
        return routers

    def delete_floatingip(self, context: Any, id: str) -> Any:
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
