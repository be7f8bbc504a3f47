"""Nova's conductor, scheduler and computes in the process of its API, on Nova's fake hypervisor.

They communicate through oslo.messaging's in-memory `fake://` transport; three computes make anti-affinity meaningful.
Keystone and Placement must answer first.
"""

from __future__ import annotations

import re
import sys
import time
import types
import urllib.error
import urllib.request
import uuid
from typing import Any

from nova import context, exception, objects, service
from nova.compute import manager
from nova.compute import rpcapi as compute_rpcapi
from nova.objects import host_mapping
from nova.virt import fake

from . import environment, ground
from .front import Boots

HOSTS = ("compute-1", "compute-2", "compute-3")
# The target of nova.conf's `compute_driver`; Nova looks for drivers below its own package.
DRIVER_MODULE = "nova.virt.perdure"

_NEEDED = ("keystone", "placement")
_NEEDED_SECONDS = 120.0

_boots = Boots()
_running: list[Any] = []


class Driver(fake.FakeDriver):
    def get_nodenames_by_uuid(self, refresh: bool = False) -> dict[str, str]:
        """The node names by stable UUIDs. FakeDriver's UUIDs change with each process, and Placement refuses that."""
        return {_node_id(name): name for name in self.get_available_nodes()}

    def get_available_resource(self, nodename: str) -> dict[str, Any]:
        return dict(super().get_available_resource(nodename), uuid=_node_id(nodename))

    def spawn(self, context: Any, instance: Any, *rest: Any, **named: Any) -> Any:
        boot = _boots.current()
        time.sleep(boot.boot_delay)
        if _struck(boot.boot_abort, instance):
            raise exception.BuildAbortException(
                instance_uuid=instance.uuid, reason="a configured fault of the local deployment"
            )
        if _struck(boot.boot_fail, instance):
            raise exception.InstanceDeployFailure(reason="a configured fault of the local deployment")
        super().spawn(context, instance, *rest, **named)
        # Nova passes everything from `network_info` on by name.
        _run_server(instance, named.get("network_info"), running=named.get("power_on", True))

    def destroy(self, context: Any, instance: Any, *rest: Any, **named: Any) -> Any:
        boot = _boots.current()
        time.sleep(boot.delete_delay)
        if _struck(boot.delete_fail, instance):
            raise exception.InstanceTerminationFailure(reason="a configured fault of the local deployment")
        ground.remove(ground.SERVERS, instance.uuid)
        super().destroy(context, instance, *rest, **named)

    def power_off(self, instance: Any, *rest: Any, **named: Any) -> Any:
        if instance.uuid in self.instances:  # FakeDriver does not know the servers of an earlier process
            super().power_off(instance, *rest, **named)
        _switch(instance, running=False)

    def power_on(self, context: Any, instance: Any, *rest: Any, **named: Any) -> Any:
        if instance.uuid in self.instances:
            super().power_on(context, instance, *rest, **named)
        _switch(instance, running=True)


def start(boots: Boots) -> None:
    global _boots
    _boots = boots
    sys.modules[DRIVER_MODULE] = types.ModuleType(DRIVER_MODULE)
    sys.modules[DRIVER_MODULE].Driver = Driver  # type: ignore[attr-defined]
    # Nova's file of node identities knows one host per process, and Nova refuses to start with others.
    manager.ComputeManager._ensure_existing_node_identity = lambda *_: None
    objects.register_all()
    _await_needed()
    for binary in ("nova-conductor", "nova-scheduler"):
        _run(service.Service.create(binary=binary, host=HOSTS[0]))
    for host in HOSTS:
        _run(
            service.Service.create(
                binary="nova-compute",
                host=host,
                topic=compute_rpcapi.RPC_TOPIC,
                topic_alt=compute_rpcapi.RPC_TOPIC_ALT,
            )
        )
    host_mapping.discover_hosts(context.get_admin_context())


def _run(started: Any) -> None:
    started.start()
    _running.append(started)  # keep a reference, against garbage collection


def _await_needed() -> None:
    deadline = time.monotonic() + _NEEDED_SECONDS
    for name in _NEEDED:
        url = f"{environment.urls()[name]}/perdure/health"
        while not _answers(url):
            if time.monotonic() > deadline:
                sys.exit(f"{name} does not answer at {url}")
            time.sleep(0.1)


def _answers(url: str) -> bool:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=3):
            return True
    except OSError:
        return False


def _run_server(instance: Any, network_info: Any, *, running: bool) -> None:
    found = {
        "id": instance.uuid,
        "name": instance.display_name,
        "project": instance.project_id,
        "addresses": [ip["address"] for vif in network_info or () for ip in vif.fixed_ips()],
        "user_data": instance.user_data or "",
        "running": running,
        "boot": time.time_ns(),
    }
    ground.write(ground.SERVERS, instance.uuid, found)


def _switch(instance: Any, *, running: bool) -> None:
    found = ground.read(ground.SERVERS, instance.uuid)
    if found is not None:
        ground.write(ground.SERVERS, instance.uuid, {**found, "running": running, "boot": time.time_ns()})


def _node_id(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


def _struck(pattern: str, instance: Any) -> bool:
    return bool(pattern) and re.search(pattern, instance.display_name) is not None
