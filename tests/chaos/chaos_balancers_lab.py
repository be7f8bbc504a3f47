"""An installation whose load balancers are broken into: a real OpenStack, and lives of load balancers.

A life has turns, each of which begins where the one before has ended:

    create (one machine) ──► grow (two) ──► roll out (two others) ──► shrink (one) ──► delete

As many lives as there are turns, each at another one, take all turns at the same time.

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
from chaos_cluster import Cluster
from chaos_installation import Installation
from chaos_striking import write_name

from domain.loadbalancers.resources import HAS_MASTER
from localcloud import services
from localcloud.deployment import Deployment
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
# The tests of Events check which Events a turn has; the sweep breaks some of them.
EVENTS = "POST events"
_HEALTHY = ("ConfigReady", "EnvoyReady", "EnvoyUpToDate")
_REPORT_SECONDS = 45.0
_FAULTS_SECONDS = 0.2


@dataclass
class Life:
    """One load balancer after another, and what there should be of the newest; nothing at all while `name` is empty."""

    name: str = ""
    replicas: int = 0
    zone: str = ""
    after: str = TURNS[-1]
    """The turn that was taken last."""

    @property
    def coming(self) -> str:
        """The turn that comes next."""
        return TURNS[(TURNS.index(self.after) + 1) % len(TURNS)]


class BalancersLab(Installation):
    """The installation."""

    def __init__(self, state: Path) -> None:
        used = (*services.CLUSTER, services.TEMPORAL, services.PREPARATION, *services.OPENSTACK)
        worker = ("worker", "--only", "loadbalancers")
        super().__init__(state, used, SETTINGS, worker, clouds=(Cloud.OPENSTACK,), reserve=True)
        self.cloud = OpenStackControl.of(self.deployment)
        self.cloud.clear()
        self.lives = [Life()]
        self._serial = 0
        self._hits: dict[str, dict[str, int]] = {}
        self._hits_at: dict[str, float] = {}
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
        """Let the first life take undisturbed turns until it is the one's."""
        self._take_until({0: turn})

    def stagger(self) -> None:
        """Let lives take undisturbed turns until each is at another one."""
        self.lives += [Life() for _ in TURNS[len(self.lives) :]]
        first = TURNS.index(self.lives[0].coming)
        self._take_until({number: TURNS[(first + number) % len(TURNS)] for number in range(len(TURNS))})

    def _take_until(self, turns: dict[int, str]) -> None:
        while late := [self.lives[number] for number, turn in turns.items() if self.lives[number].coming != turn]:
            for life in late:
                self._take(life)
            self.settle()

    def take(self, turn: str) -> None:
        """What people do to the first life's load balancer."""
        assert self.lives[0].coming == turn
        self._take(self.lives[0])

    def take_all(self) -> None:
        """What people do to all load balancers."""
        for life in self.lives:
            self._take(life)

    def _take(self, life: Life) -> None:
        life.after = life.coming
        {"create": self._create, "delete": self._delete}.get(life.after, self._change)(life)

    def _create(self, life: Life) -> None:
        self._serial += 1
        life.name, life.replicas, life.zone = f"web-{self._serial}", 1, ""
        given = services.settled(project(self.deployment.state))
        found = {name.removeprefix("PERDURE_LOADBALANCERS_"): value for name, value in given.items()}
        spec = {
            "replicas": 1,
            "selector": {"matchLabels": {"yawol.stackit.cloud/loadbalancer": life.name}},
            "ports": [{"name": "http", "protocol": "TCP", "port": 8080, "nodePort": 30080}],
            "endpoints": [{"name": "node", "addresses": ["127.0.0.1"]}],
            "infrastructure": {
                "defaultNetwork": {"floatingNetID": found["FLOATING_NET_ID"], "networkID": found["NETWORK_ID"]},
                "flavor": {"flavorName": found["FLAVOR_NAME"]},
                "image": {"imageName": found["IMAGE_NAME"]},
                "authSecretRef": {"name": LOAD_BALANCER_SECRET, "namespace": NAMESPACE},
            },
        }
        made = {"apiVersion": GROUP_VERSION, "kind": "LoadBalancer", "metadata": {"name": life.name}}
        self.cluster.create("loadbalancers", NAMESPACE, {**made, "spec": spec})

    def _change(self, life: Life) -> None:
        if life.after == "roll out":
            life.zone = "nova"
            spec: Json = {"infrastructure": {"availabilityZone": life.zone}}
        else:
            life.replicas = 2 if life.after == "grow" else 1
            spec = {"replicas": life.replicas}
        self.cluster.patch("loadbalancers", NAMESPACE, life.name, {"spec": spec})

    def _delete(self, life: Life) -> None:
        self.cluster.delete("loadbalancers", NAMESPACE, life.name)
        life.name = ""

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
        wrong = []
        names = [life.name for life in self.lives if life.name]
        if sorted(map(_name, balancers)) != sorted(names):
            wrong.append(f"LoadBalancers {[_name(each) for each in balancers]} instead of {names}")
        left = [each for each in (*sets, *machines) if _balancer(each) not in names]
        wrong += [f"{each.get('kind', 'object')} {_name(each)} is left" for each in left]
        for life in self.lives:
            own = [[each for each in some if _balancer(each) == life.name] for some in (balancers, sets, machines)]
            wrong += [f"{life.name}: {each}" for each in _of_life(life, *own)] if life.name and own[0] else []
        return wrong

    def _of_cloud(self, balancers: list[Json], machines: list[Json]) -> list[str]:
        """One of each for each load balancer, and no other of anybody's."""
        full = sorted(f"{NAMESPACE}/{life.name}" for life in self.lives if life.name)
        names = sorted(_name(each) for each in machines)
        floating = listed(self._member, "network", "/v2.0/floatingips", "floatingips")
        groups = listed(self._member, "network", "/v2.0/security-groups", "security_groups")
        ports = listed(self._member, "network", "/v2.0/ports", "ports")
        servers = listed(self._member, "compute", "/servers/detail", "servers")
        found: tuple[tuple[str, object, object], ...] = (
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
            (
                "recorded addresses",
                {f"{NAMESPACE}/{_name(each)}": each.get("status", {}).get("externalIP") for each in balancers},
                {each["description"]: each["floating_ip_address"] for each in floating if each["description"] in full},
            ),
        )
        return [f"{what}: {there} instead of {should}" for what, there, should in found if there != should]

    def _of_rights(self, machines: list[Json]) -> list[str]:
        """Every machine has its four objects, and nothing else has any."""
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
        return writes - {EVENTS}, {f"{each.service} {each.method} {each.route}" for each in calls}

    def disturb(self, call: str, **fault: Any) -> Callable[[], bool]:
        """Disturb the next call of that kind; whether it was struck."""
        service, method, route = call.split(" ")
        path = route.replace("{id}", "[^/]+") + "$"
        made = self.cloud.fault(service, method, path, **{"count": 1, **fault})
        return lambda: self._struck(service).get(made.id, 0) > 0

    def _struck(self, service: str) -> dict[str, int]:
        """How often each fault struck: many are waited for at once, so this is asked once for all of them."""
        if time.monotonic() - self._hits_at.get(service, 0.0) > _FAULTS_SECONDS:
            self._hits[service] = {each.id: each.hits for each in self.cloud.faults(service)}
            self._hits_at[service] = time.monotonic()
        return self._hits[service]


class Agents:
    """The agents of all machines, played by a thread: each machine with a server reports."""

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
        masters: dict[str, Json] = {}
        for each in sorted(machines, key=lambda each: (-_revision(each), _name(each))):
            masters.setdefault(_balancer(each), each)
        for each in machines:
            master, uid, now = masters[_balancer(each)] is each, each["metadata"]["uid"], time.monotonic()
            last = self._reported.get(uid)
            if last is None or last[0] != master or now > last[1] + _REPORT_SECONDS:
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


def _of_life(life: Life, balancers: list[Json], sets: list[Json], machines: list[Json]) -> list[str]:
    ready = balancers[0].get("status", {}).get("readyReplicas")
    zones = {each["spec"]["infrastructure"].get("availabilityZone", "") for each in machines}
    scaled = [each["spec"]["replicas"] for each in sets if each["spec"].get("replicas")]
    checks = (
        (len(machines) == life.replicas, f"{len(machines)} machines"),
        (not any("deletionTimestamp" in each["metadata"] for each in machines), "a machine is still to go"),
        (zones == {life.zone}, f"machines in zones {zones}"),
        (scaled == [life.replicas], f"sets scaled to {scaled}"),
        (ready == life.replicas, f"{ready} ready"),
    )
    return [message for holds, message in checks if not holds]


def _conditions(*, master: bool) -> list[Json]:
    states = dict.fromkeys(_HEALTHY, "True") | {"KeepalivedMaster": str(master)}
    times = {"lastHeartbeatTime": _ago(), "lastTransitionTime": _ago(hours=1)}
    return [{"type": type_, "status": state, "reason": "Played", **times} for type_, state in states.items()]


def _ago(**span: float) -> str:
    return f"{datetime.now(UTC) - timedelta(**span):%Y-%m-%dT%H:%M:%SZ}"


def _revision(machine: Json) -> int:
    annotations = machine["metadata"].get("annotations", {})
    return int(annotations.get("loadbalancer.yawol.stackit.cloud/revision", "0"))


def _balancer(obj: Json) -> str:
    """The name of its load balancer: sets and machines have it in front of their own."""
    return "-".join(_name(obj).split("-")[:2])


def _name(obj: Json) -> str:
    return str(obj["metadata"]["name"])


def _ours(found: Iterable[Json], field: str) -> list[str]:
    return sorted(each[field] for each in found if str(each[field]).startswith(f"{NAMESPACE}/"))


def _ids(found: Iterable[Json]) -> list[str]:
    return sorted(each["id"] for each in found)
