"""An installation whose load balancers are broken into: a real OpenStack, and one load balancer after another.

Work comes in turns, each of which begins where the one before has ended:

    create (one machine) ──► grow (two) ──► roll out (two others) ──► shrink (one) ──► delete

No machine boots: its agent is played, which has reported for an hour that all is well; the first machine of the newest
revision says that it has the address. A rollout waits for two minutes then: that moment is moved into the past.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from chaos_claims_lab import write_name
from chaos_cluster import Cluster
from chaos_installation import Installation
from chaos_proxy import Request

from domain.loadbalancers.resources import HAS_MASTER
from localcloud import services
from localcloud.deployment import Deployment
from localcloud.openstack.contract import Fault
from localcloud.openstack.control import OpenStackControl
from localcloud.openstack.control_plane import project
from localcloud.openstack.project import listed, project_session
from localcloud.services import LOAD_BALANCER_NAMESPACE as NAMESPACE
from localcloud.services import LOAD_BALANCER_SECRET
from localcloud.state import Cloud

Json = dict[str, Any]

# An API server that has died is given up by clients within half a minute, a quota is tried again after ten seconds.
SETTLE_SECONDS = 240.0
SETTINGS = {"PERDURE_DRAIN": "2"}
GROUP_VERSION = "yawol.stackit.cloud/v1beta1"
TURNS = ("create", "grow", "roll out", "shrink", "delete")
# Perdure's word to people: nothing follows from an Event.
UNTOLD = "POST events"
_HEALTHY = ("ConfigReady", "EnvoyReady", "EnvoyUpToDate")
_REPORT_SECONDS = 45.0


@dataclass
class Expected:
    """What there should be; nothing at all while `name` is empty."""

    name: str = ""
    replicas: int = 0
    zone: str = ""


class BalancersLab(Installation):
    """The installation."""

    def __init__(self, state: Path) -> None:
        used = (*services.CLUSTER, services.TEMPORAL, services.PREPARATION, *services.OPENSTACK)
        worker = ("worker", "--only", "loadbalancers")
        super().__init__(state, used, SETTINGS, worker, clouds=(Cloud.OPENSTACK,), reserve=True)
        self.cloud = OpenStackControl.of(self.deployment)
        self.cloud.clear()
        self.expected = Expected()
        self.after = TURNS[-1]
        """The turn that was taken last."""
        self._serial = 0
        self._member = project_session(self.deployment)
        self._agents = Agents(self.deployment)
        self.start()
        self._agents.start()

    def close(self) -> None:
        """Stop all of it and remove its data."""
        agents = getattr(self, "_agents", None)
        if agents is not None:
            agents.stop()
        super().close()
        self.cloud.close()

    def fill(self) -> None:
        """Nothing is there, of an earlier run neither."""
        for each in self.cluster.list("loadbalancers", NAMESPACE):
            self.cluster.delete("loadbalancers", NAMESPACE, _name(each))
        self.settle()

    def lift(self) -> None:
        """Break nothing any more."""
        super().lift()
        self.cloud.clear()

    # --- turns ---

    def ready_to(self, turn: str) -> None:
        """Take undisturbed turns until it is the one's."""
        while _next(self.after) != turn:
            self.take(_next(self.after))
            self.settle()

    def take(self, turn: str) -> None:
        """What people do."""
        self.after = turn
        getattr(self, f"_{turn.replace(' ', '_')}")()

    def _create(self) -> None:
        self._serial += 1
        self.expected = Expected(name=f"web-{self._serial}", replicas=1)
        given = services.settled(project(self.deployment.state))
        found = {name.removeprefix("PERDURE_LOADBALANCERS_"): value for name, value in given.items()}
        spec = {
            "replicas": 1,
            "selector": {"matchLabels": {"yawol.stackit.cloud/loadbalancer": self.expected.name}},
            "ports": [{"name": "http", "protocol": "TCP", "port": 8080, "nodePort": 30080}],
            "endpoints": [{"name": "node", "addresses": ["127.0.0.1"]}],
            "infrastructure": {
                "defaultNetwork": {"floatingNetID": found["FLOATING_NET_ID"], "networkID": found["NETWORK_ID"]},
                "flavor": {"flavorName": found["FLAVOR_NAME"]},
                "image": {"imageName": found["IMAGE_NAME"]},
                "authSecretRef": {"name": LOAD_BALANCER_SECRET, "namespace": NAMESPACE},
            },
        }
        made = {"apiVersion": GROUP_VERSION, "kind": "LoadBalancer", "metadata": {"name": self.expected.name}}
        self.cluster.create("loadbalancers", NAMESPACE, {**made, "spec": spec})

    def _grow(self) -> None:
        self._scale(2)

    def _shrink(self) -> None:
        self._scale(1)

    def _scale(self, replicas: int) -> None:
        self.expected.replicas = replicas
        self._patch({"replicas": replicas})

    def _roll_out(self) -> None:
        self.expected.zone = "nova"
        self._patch({"infrastructure": {"availabilityZone": "nova"}})

    def _delete(self) -> None:
        self.cluster.delete("loadbalancers", NAMESPACE, self.expected.name)
        self.expected = Expected()

    def _patch(self, spec: Json) -> None:
        self.cluster.patch("loadbalancers", NAMESPACE, self.expected.name, {"spec": spec})

    # --- settling ---

    def settle(self, seconds: float = SETTLE_SECONDS) -> float:
        """Wait until both sides agree; how many seconds it took."""
        return self.agree(seconds)

    def changes(self) -> object:
        """See `Installation`."""
        return self.proxy.changes, self.cloud.ledger().mutating()

    def violations(self) -> list[str]:
        """What is not as it should be, on either side."""
        balancers = self.cluster.list("loadbalancers", NAMESPACE)
        sets = self.cluster.list("loadbalancersets", NAMESPACE)
        machines = self.cluster.list("loadbalancermachines", NAMESPACE)
        return [
            *self._of_objects(balancers, sets, machines),
            *self._of_cloud(balancers, machines),
            *self._of_rights(machines),
            *self._of_workflows([*balancers, *sets, *machines]),
        ]

    def _of_objects(self, balancers: list[Json], sets: list[Json], machines: list[Json]) -> list[str]:
        wanted = self.expected
        if not wanted.name:
            left = [*balancers, *sets, *machines]
            return [f"{each.get('kind', 'object')} {_name(each)} is left" for each in left]
        if [_name(each) for each in balancers] != [wanted.name]:
            return [f"LoadBalancers {[_name(each) for each in balancers]}"]
        status = balancers[0].get("status", {})
        zones = {each["spec"]["infrastructure"].get("availabilityZone", "") for each in machines}
        scaled = [each["spec"]["replicas"] for each in sets if each["spec"].get("replicas")]
        checks = (
            (len(machines) == wanted.replicas, f"{len(machines)} machines"),
            (not any("deletionTimestamp" in each["metadata"] for each in machines), "a machine is still to go"),
            (zones == {wanted.zone}, f"machines in zones {zones}"),
            (scaled == [wanted.replicas], f"sets scaled to {scaled}"),
            (status.get("readyReplicas") == wanted.replicas, f"{status.get('readyReplicas')} ready"),
        )
        return [said for holds, said in checks if not holds]

    def _of_cloud(self, balancers: list[Json], machines: list[Json]) -> list[str]:
        """One of each, and no other of anybody's."""
        wanted = self.expected
        full = [f"{NAMESPACE}/{wanted.name}"] if wanted.name else []
        names = sorted(_name(each) for each in machines)
        floating = listed(self._member, "network", "/v2.0/floatingips", "floatingips")
        groups = listed(self._member, "network", "/v2.0/security-groups", "security_groups")
        ports = listed(self._member, "network", "/v2.0/ports", "ports")
        servers = listed(self._member, "compute", "/servers/detail", "servers")
        status = balancers[0].get("status", {}) if balancers else {}
        found = (
            ("floating IPs", _ours(floating, "description"), full),
            ("security groups", _ours(groups, "name"), full),
            ("ports", _ours(ports, "name"), sorted([*full, *(f"{NAMESPACE}/{name}" for name in names)])),
            ("servers", sorted(each["name"] for each in servers), names),
            ("servers that run", sorted(each["name"] for each in servers if each["status"] == "ACTIVE"), names),
            (
                "recorded servers",
                sorted(each.get("status", {}).get("serverID", "") for each in machines),
                _ids(servers),
            ),
        )
        wrong = [f"{what}: {there} instead of {should}" for what, there, should in found if there != should]
        address = [each["floating_ip_address"] for each in floating if each["description"] in full]
        if full and address != [status.get("externalIP")]:
            wrong.append(f"the status says {status.get('externalIP')}, the cloud {address}")
        return wrong

    def _of_rights(self, machines: list[Json]) -> list[str]:
        """Every machine has its four objects, nobody else has any."""
        names = sorted(_name(each) for each in machines)
        wrong = []
        for plural in ("serviceaccounts", "roles", "rolebindings"):
            there = sorted(_name(each) for each in self.cluster.list(plural, NAMESPACE) if "web-" in _name(each))
            if there != names:
                wrong.append(f"{plural}: {there} instead of {names}")
        return wrong

    def _of_workflows(self, objects: Iterable[Json]) -> list[str]:
        running = self.workflows.running()
        kinds = ("LoadBalancer/", "LoadBalancerSet/", "LoadBalancerMachine/")
        there = {id_.rpartition("/")[2] for id_ in running if id_.startswith(kinds)}
        wrong = [f"{id_} is {phase}" for id_, phase in running.items() if phase in ("Bug", "Failed")]
        wrong += [f"{id_} has ended by failing" for id_ in self.workflows.broken()]
        uids = {each["metadata"]["uid"] for each in objects}
        wrong += [f"no workflow for {len(uids - there)} objects"] if uids - there else []
        return wrong + ([f"{len(there - uids)} workflows of objects that are gone"] if there - uids else [])

    # --- effects ---

    def effects(self, turn: str) -> tuple[set[str], set[str]]:
        """Take a turn undisturbed: its writes to Kubernetes, and its calls that change something in OpenStack."""
        self.cloud.reset_ledger()
        self.proxy.requests.clear()
        self.proxy.recording = True
        try:
            self.take(turn)
            self.settle()
        finally:
            self.proxy.recording = False
        writes = {write_name(each) for each in self.proxy.requests if each.method != "GET"}
        calls = [each for each in self.cloud.ledger(recent=True).recent if each.mutating and each.service != "keystone"]
        return writes - {UNTOLD}, {f"{each.service} {each.method} {each.route}" for each in calls}

    def disturb(self, call: str, **fault: Any) -> Callable[[], bool]:
        """Disturb the next call of that kind; whether it was struck."""
        service, method, route = call.split(" ")
        path = route.replace("{id}", "[^/]+") + "$"
        made = self.cloud.fault(service, method, path, **{"count": 1, **fault})
        return lambda: _hits(self.cloud.faults(service), made.id) > 0


class Agents:
    """The agents of all machines, played by a thread: whoever has a server reports."""

    def __init__(self, deployment: Deployment) -> None:
        self._cluster = Cluster(deployment)
        self._reported: dict[str, tuple[bool, float]] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="agents", daemon=True)

    def start(self) -> None:
        """Begin to report."""
        self._thread.start()

    def stop(self) -> None:
        """Report no more."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(30)
        self._cluster.close()

    def _run(self) -> None:
        while not self._over.wait(0.4):
            with suppress(httpx.HTTPError, AssertionError):  # the API server may be away
                self._report()
                for each in self._cluster.list("loadbalancersets", NAMESPACE):
                    self._age(each)

    def _report(self) -> None:
        machines = [
            each
            for each in self._cluster.list("loadbalancermachines", NAMESPACE)
            if each.get("status", {}).get("serverID") and "deletionTimestamp" not in each["metadata"]
        ]
        newest = max(map(_revision, machines), default=0)
        masters = sorted(_name(each) for each in machines if _revision(each) == newest)
        for each in machines:
            master, uid, now = _name(each) == masters[0], each["metadata"]["uid"], time.monotonic()
            said = self._reported.get(uid)
            if said is None or said[0] != master or now > said[1] + _REPORT_SECONDS:
                patch = {"status": {"conditions": _conditions(master=master)}}
                self._cluster.patch("loadbalancermachines", NAMESPACE, _name(each), patch, "status")
                self._reported[uid] = (master, now)

    def _age(self, set_: Json) -> None:
        """One of its machines has had the address for an hour; its LoadBalancer hears of that."""
        conditions = set_.get("status", {}).get("conditions", [])
        found = next((each for each in conditions if each["type"] == HAS_MASTER and each["status"] == "True"), None)
        if found is None or found["lastTransitionTime"] < _ago(minutes=30):
            return
        others = [each for each in conditions if each is not found]
        aged = [*others, {**found, "lastTransitionTime": _ago(hours=1)}]
        self._cluster.patch("loadbalancersets", NAMESPACE, _name(set_), {"status": {"conditions": aged}}, "status")
        note = {"metadata": {"annotations": {"example.com/aged": _name(set_)}}}
        for owner in set_["metadata"].get("ownerReferences", []):
            self._cluster.patch("loadbalancers", NAMESPACE, owner["name"], note)


def named(write: str) -> Callable[[Request], bool]:
    """A predicate that recognises writes of that name."""
    return lambda request: request.method != "GET" and write_name(request) == write


def _next(turn: str) -> str:
    return TURNS[(TURNS.index(turn) + 1) % len(TURNS)]


def _conditions(*, master: bool) -> list[Json]:
    states = dict.fromkeys(_HEALTHY, "True") | {"KeepalivedMaster": str(master)}
    times = {"lastHeartbeatTime": _ago(), "lastTransitionTime": _ago(hours=1)}
    return [{"type": type_, "status": state, "reason": "Played", **times} for type_, state in states.items()]


def _ago(**span: float) -> str:
    return f"{datetime.now(UTC) - timedelta(**span):%Y-%m-%dT%H:%M:%SZ}"


def _revision(machine: Json) -> int:
    annotations = machine["metadata"].get("annotations", {})
    return int(annotations.get("loadbalancer.yawol.stackit.cloud/revision", "0"))


def _name(obj: Json) -> str:
    return str(obj["metadata"]["name"])


def _ours(found: Iterable[Json], field: str) -> list[str]:
    return sorted(each[field] for each in found if str(each[field]).startswith(f"{NAMESPACE}/"))


def _ids(found: Iterable[Json]) -> list[str]:
    return sorted(each["id"] for each in found)


def _hits(faults: Iterable[Fault], id_: str) -> int:
    return next((each.hits for each in faults if each.id == id_), 0)
