"""An installation whose 3scale objects are broken into: one of each of the eleven kinds, life after life.

    create (everything, in one go) ──► change (something of every kind) ──► delete (everything, in one go)

Whatever breaks, each turn has to end with the same in 3scale as in a life that nothing disturbs, and with objects that
say so; what 3scale holds then stands in `threescale_undisturbed.json`. All lives have one tenant of 3scale, and each
makes a tenant of its own beside it, as Tenants do. Where 3scale has shown that tenant's token to nobody, a person makes
another one, as the object asks for it.
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import httpx
from chaos_claims_lab import write_name
from chaos_installation import Installation
from chaos_threescale_turns import changes

from domain.identity import Kind
from domain.threescale import APPLICATION_AUTH, CUSTOM_KINDS, PROXY_CONFIG_PROMOTE, TENANT
from engine.kube import SECRET
from localcloud import services
from localcloud.bench.threescale_all_kinds import TENANT_TOKEN, all_kinds, differences, holds
from localcloud.state import Cloud
from localcloud.threescale.contract import Fault, TenantRecord
from localcloud.threescale.control import ThreescaleControl

Json = dict[str, Any]

SETTLE_SECONDS = 150.0
# Nothing may change on either side for so long after everything agrees.
QUIET_SECONDS = 1.5
# A call that hangs is given up after this.
CALL_SECONDS = 5
SETTINGS = {
    "PERDURE_WATCH_LEASE": "false",
    "PERDURE_WORKER_DRAIN": "2",
    "PERDURE_THREESCALE_TIMEOUT": str(CALL_SECONDS),
}
UNDISTURBED = Path(__file__).parent / "threescale_undisturbed.json"
NAMESPACE, SHOP = "shop", "shop"
TURNS = ("create", "change", "delete")
# Perdure's word to people: nothing follows from an Event.
UNTOLD = "POST events"
LEAVING = "scheduled_for_deletion"
_DONE = ("Ready", "Synced")


class ThreescaleLab(Installation):
    """The installation."""

    def __init__(self, state: Path) -> None:
        used = (*services.CLUSTER, services.TEMPORAL, services.PREPARATION, services.THREESCALE)
        worker = ("worker", "--only", "threescale")
        super().__init__(state, used, SETTINGS, worker, clouds=(Cloud.THREESCALE,))
        self.cloud = ThreescaleControl.of(self.deployment)
        self.after = TURNS[-1]
        """The turn that was taken last."""
        self.undisturbed: dict[str, dict[str, list[str]]] = json.loads(UNDISTURBED.read_text())
        """What the tenant holds after each turn of a life that nothing disturbs."""
        self.token_may_be_lost = False
        """Whether a person may have to make a token: its only showing was disturbed."""
        self._life = 0
        self._tenant = self.cloud.add_tenant(SHOP)
        self._master = self.cloud.tenant("master")
        self.cluster.create("namespaces", "", {"metadata": {"name": NAMESPACE}})
        account = {"adminURL": self._tenant.url, "token": self._tenant.token}
        secret = {"metadata": {"name": "threescale-provider-account"}, "stringData": account}
        self.cluster.create("secrets", NAMESPACE, secret)
        self.start()

    def close(self) -> None:
        """Stop all of it and remove its data."""
        super().close()
        self.cloud.close()

    def fill(self) -> None:
        """Nothing is there."""
        self.settle()

    def record(self) -> None:
        """Live one life, and write down what comes of each turn."""
        self.undisturbed = {}
        for turn in TURNS:
            self.take(turn)
            self.settle()
            self.undisturbed[turn] = holds(self.cloud.world(SHOP))
        UNDISTURBED.write_text(json.dumps(self.undisturbed, indent=1, sort_keys=True) + "\n")

    def lift(self) -> None:
        """Break nothing any more."""
        super().lift()
        self.cloud.clear()

    # --- turns ---

    @property
    def organization(self) -> str:
        """That of this life's own tenant."""
        return f"branch-{self._life}"

    def ready_to(self, turn: str) -> None:
        """Take undisturbed turns until it is the one's."""
        while _next(self.after) != turn:
            self.take(_next(self.after))
            self.settle()

    def take(self, turn: str) -> None:
        """What people do."""
        self.after = turn
        self.token_may_be_lost = False
        {"create": self._create, "change": self._change, "delete": self._delete}[turn]()

    def _create(self) -> None:
        self._life += 1
        for kind, body in self._objects():
            if kind == SECRET:  # an earlier life's has been written to
                self.cluster.delete(kind.plural, NAMESPACE, _name(body))
            self.cluster.create(kind.plural, NAMESPACE, body)

    def _change(self) -> None:
        for kind, name, patch in changes():
            self.cluster.patch(kind.plural, NAMESPACE, name, patch)

    def _delete(self) -> None:
        for kind, body in self._objects():
            if kind != SECRET:  # with its Secret gone an object is disconnected, and leaves what it has in 3scale
                self.cluster.delete(kind.plural, NAMESPACE, _name(body))

    def _objects(self) -> list[tuple[Kind, Json]]:
        return all_kinds(self._master, self.organization)

    # --- settling ---

    def settle(self, seconds: float = SETTLE_SECONDS) -> float:
        """Wait until both sides agree and nothing changes any more; how many seconds it took.

        Raises:
            AssertionError: with everything that is still wrong.
        """
        began = time.monotonic()
        wrong = ["not looked at"]
        while wrong and time.monotonic() < began + seconds:
            time.sleep(0.3)
            try:
                self._open_tenant()
                wrong = self.violations() or self._moving()
            except httpx.TransportError as error:  # a server that was killed is not back yet
                wrong = [f"{type(error).__name__}: {error}"]
        took = time.monotonic() - began
        assert not wrong, f"after {took:.0f} s:\n  " + "\n  ".join(wrong) + "\n" + self.story()
        return took

    def _moving(self) -> list[str]:
        if self.proxy.held:
            return ["a request is still without an answer"]
        before = self.proxy.changes, self.cloud.ledger().mutating()
        time.sleep(QUIET_SECONDS)
        after = self.proxy.changes, self.cloud.ledger().mutating()
        return [f"still at work: {before} and then {after} changes"] if before != after else self.violations()

    def _open_tenant(self) -> None:
        """The person's part: a token where the object says that it has none."""
        if not self.token_may_be_lost or self.after == "delete" or self._token():
            return
        branches = self._branches()
        noted = (self.cluster.get(TENANT.plural, NAMESPACE, "branch") or {}).get("metadata", {}).get("annotations", {})
        if len(branches) != 1 or "tenantID" not in noted:
            return
        made = self.cloud.add_token(branches[0].name)
        secret = {"metadata": {"name": self._token_name}, "stringData": {"token": made.value}}
        self.cluster.create("secrets", NAMESPACE, secret)

    @property
    def _token_name(self) -> str:
        return f"{TENANT_TOKEN}-{self.organization}"

    def _token(self) -> Mapping[str, str]:
        data = (self.cluster.get("secrets", NAMESPACE, self._token_name) or {}).get("data", {})
        return {name: base64.b64decode(value).decode() for name, value in data.items()}

    def _branches(self) -> list[TenantRecord]:
        """Tenants of this life's organization."""
        wanted = re.compile(rf"{self.organization}(-\d+)?")  # numbered where another had the name
        return [each for each in self.cloud.tenants() if wanted.fullmatch(each.name)]

    # --- what is wrong ---

    def violations(self) -> list[str]:
        """What is not as it should be, on either side."""
        objects = {kind: self.cluster.list(kind.plural, NAMESPACE) for kind in CUSTOM_KINDS}
        return [
            *(self._of_the_gone(objects) if self.after == "delete" else self._of_objects(objects)),
            *self._of_tenant(),
            *self._of_branch(),
            *self._of_workflows([each for listed in objects.values() for each in listed]),
        ]

    def _of_the_gone(self, objects: Mapping[Kind, list[Json]]) -> list[str]:
        return [f"{kind.name} {_name(each)} is left" for kind, listed in objects.items() for each in listed]

    def _of_objects(self, objects: Mapping[Kind, list[Json]]) -> list[str]:
        wanted = {(kind.name, _name(body)) for kind, body in self._objects() if kind != SECRET}
        there = {(kind.name, _name(each)) for kind, listed in objects.items() for each in listed}
        wrong = [f"{kind} {name} is not there" for kind, name in wanted - there]
        for kind, listed in objects.items():
            wrong += [f"{kind.name} {_name(each)} says {_said(each)}" for each in listed if not _settled(kind, each)]
        return wrong

    def _of_tenant(self) -> list[str]:
        """What an undisturbed life has, and nothing else."""
        wanted = self.undisturbed.get(self.after)
        return differences(wanted, holds(self.cloud.world(SHOP))) if wanted is not None else []

    def _of_branch(self) -> list[str]:
        """One tenant of its own, which its Secret opens; scheduled for deletion when the object has gone."""
        branches = self._branches()
        if not self._life:
            return []
        if len(branches) != 1:
            return [f"{len(branches)} tenants of {self.organization}"]
        (branch,) = branches
        if self.after == "delete":
            return [] if branch.state == LEAVING else [f"tenant {branch.name} is {branch.state}"]
        values = self._token()
        opens = values.get("token") in {each.value for each in branch.tokens} and values.get("adminURL") == branch.url
        return [] if opens else [f"the Secret of tenant {branch.name} has {sorted(values)}, which does not open it"]

    def _of_workflows(self, objects: Iterable[Json]) -> list[str]:
        running = self.workflows.running()
        kinds = {kind.name for kind in CUSTOM_KINDS}
        there = {id_.rpartition("/")[2] for id_ in running if id_.partition("/")[0] in kinds}
        wrong = [f"{id_} is {phase}" for id_, phase in running.items() if phase in ("Bug", "Failed")]
        wrong += [f"{id_} has ended by failing" for id_ in self.workflows.broken()]
        uids = {each["metadata"]["uid"] for each in objects}
        wrong += [f"no workflow for {len(uids - there)} objects"] if uids - there else []
        return wrong + ([f"{len(there - uids)} workflows of objects that are gone"] if there - uids else [])

    def audit(self) -> None:
        """`perdure audit threescale` finds nothing."""
        audited = self.command("audit", "threescale")
        assert audited.returncode == 0, (audited.stdout + audited.stderr).decode()

    def story(self) -> str:
        """What each lifecycle says about itself."""
        return self.command("list").stdout.decode()

    # --- effects ---

    def effects(self, turn: str) -> tuple[set[str], set[str]]:
        """Take a turn undisturbed: its writes to Kubernetes, and its calls that change something in 3scale."""
        self.cloud.reset_ledger()
        self.proxy.requests.clear()
        self.proxy.recording = True
        try:
            self.take(turn)
            self.settle()
        finally:
            self.proxy.recording = False
        writes = {write_name(each) for each in self.proxy.requests if each.method != "GET"}
        calls = {f"{each.method} {each.route}" for each in self.cloud.ledger().counts if each.mutating}
        return writes - {UNTOLD}, calls

    def disturb(self, call: str, **fault: object) -> Callable[[], bool]:
        """Disturb the next call of that kind; whether it was struck."""
        method, route = call.split(" ")
        made = self.cloud.fault(method, _pattern(route), **{"count": 1, **fault})  # type: ignore[arg-type]
        return lambda: _hits(self.cloud.faults(), made.id) > 0


def _pattern(route: str) -> str:
    parts = ["[^/]+" if part.startswith("{") else part for part in route.split("/")]
    return "/".join(parts) + r"(\.json)?$"


def _hits(faults: Iterable[Fault], id_: str) -> int:
    return next((each.hits for each in faults if each.id == id_), 0)


def _next(turn: str) -> str:
    return TURNS[(TURNS.index(turn) + 1) % len(TURNS)]


def _name(obj: Json) -> str:
    return str(obj["metadata"]["name"])


def _settled(kind: Kind, obj: Json) -> bool:
    """Whether it says to be in 3scale as its newest spec wants it."""
    status, meta = obj.get("status", {}), obj["metadata"]
    true_ones = {each["type"] for each in status.get("conditions", []) if each["status"] == "True"}
    unversioned = (APPLICATION_AUTH, PROXY_CONFIG_PROMOTE, TENANT)
    current = kind in unversioned or status.get("observedGeneration") == meta["generation"]
    return bool(true_ones & {*_DONE}) and current and len(true_ones) == 1 and "deletionTimestamp" not in meta


def _said(obj: Json) -> str:
    told = [each for each in obj.get("status", {}).get("conditions", []) if each["status"] == "True"]
    return ", ".join(f"{each['type']}: {each.get('message', '')}" for each in told) or "nothing"
