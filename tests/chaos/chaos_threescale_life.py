"""The life of one of each of the eleven kinds, in a namespace and a tenant of 3scale of its own.

    create (everything, in one go) ──► change (something of every kind) ──► delete (everything, in one go) ──► ...

Whatever breaks, each turn has to end with the same in 3scale as in a life that nothing disturbs, and with objects that
say so. Each round makes a tenant beside the life's own, as Tenants do. Where 3scale has shown that tenant's token to
no client, a person makes another one, as the object asks for it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

from chaos_cluster import Cluster
from chaos_threescale_turns import changes

from domain.identity import Kind
from domain.threescale import APPLICATION_AUTH, PROXY_CONFIG_PROMOTE, TENANT
from engine.kube import SECRET
from localcloud.bench.threescale_all_kinds import TENANT_TOKEN, all_kinds, differences, holds
from localcloud.threescale.contract import Fault, FaultKind, TenantRecord
from localcloud.threescale.control import ThreescaleControl

Json = dict[str, Any]
Objects = Mapping[Kind, list[Json]]

TURNS = ("create", "change", "delete")
LEAVING = "scheduled_for_deletion"
MASTER = "/master/api/providers"
_DONE = ("Ready", "Synced")


class Life:
    """One of them; its namespace and its tenant have its name."""

    def __init__(self, name: str, cluster: Cluster, cloud: ThreescaleControl) -> None:
        self.name = name
        self.after = TURNS[-1]
        """The turn that was taken last."""
        self.token_may_be_lost = False
        """Whether a person may have to make a token: its only showing was disturbed."""
        self.cluster = cluster
        self._cloud = cloud
        self._round = 0
        self._master = cloud.tenant("master")
        tenant = cloud.add_tenant(name)
        cluster.create("namespaces", "", {"metadata": {"name": name}})
        account = {"adminURL": tenant.url, "token": tenant.token}
        secret = {"metadata": {"name": "threescale-provider-account"}, "stringData": account}
        cluster.create("secrets", name, secret)

    # --- turns ---

    @property
    def coming(self) -> str:
        """The turn that comes next."""
        return TURNS[(TURNS.index(self.after) + 1) % len(TURNS)]

    @property
    def organization(self) -> str:
        """That of this round's tenant."""
        return f"{self.name}-branch-{self._round}"

    def take(self, turn: str) -> None:
        """What people do."""
        self.after = turn
        self.token_may_be_lost = False
        {"create": self._create, "change": self._change, "delete": self._delete}[turn]()

    def _create(self) -> None:
        self._round += 1
        for kind, body in self._objects():
            if kind == SECRET:  # an earlier round's has been written to
                self.cluster.delete(kind.plural, self.name, name_of(body))
            self.cluster.create(kind.plural, self.name, body)

    def _change(self) -> None:
        for kind, name, patch in changes():
            self.cluster.patch(kind.plural, self.name, name, patch)

    def _delete(self) -> None:
        for kind, body in self._objects():
            if kind != SECRET:  # with its Secret gone an object is disconnected, and leaves what it has in 3scale
                self.cluster.delete(kind.plural, self.name, name_of(body))

    def _objects(self) -> list[tuple[Kind, Json]]:
        return all_kinds(self._master, self.organization)

    # --- what is wrong ---

    def violations(self, objects: Objects, wanted: Mapping[str, list[str]] | None) -> list[str]:
        """What is not as it should be, on either side; `wanted` is what an undisturbed life has after this turn."""
        tenants = self._branches()
        self._open(tenants)
        wrong = [
            *(_of_the_gone(objects) if self.after == "delete" else self._of_objects(objects)),
            *(differences(wanted, self.holds()) if wanted is not None else []),
            *self._of_branch(tenants),
        ]
        return [f"{self.name}: {each}" for each in wrong]

    def holds(self) -> dict[str, list[str]]:
        """What 3scale has of it."""
        return holds(self._cloud.world(self.name))

    def _of_objects(self, objects: Objects) -> list[str]:
        wanted = {(kind.name, name_of(body)) for kind, body in self._objects() if kind != SECRET}
        there = {(kind.name, name_of(each)) for kind, listed in objects.items() for each in listed}
        wrong = [f"{kind} {name} is not there" for kind, name in wanted - there]
        for kind, listed in objects.items():
            wrong += [
                f"{kind.name} {name_of(each)} says {_conditions_text(each)}"
                for each in listed
                if not _settled(kind, each)
            ]
        return wrong

    def _of_branch(self, branches: list[TenantRecord]) -> list[str]:
        """One tenant of its own, which its Secret opens; scheduled for deletion when the object has gone."""
        if not self._round:
            return []
        if len(branches) != 1:
            return [f"{len(branches)} tenants of {self.organization}"]
        (branch,) = branches
        if self.after == "delete":
            return [] if branch.state == LEAVING else [f"tenant {branch.name} is {branch.state}"]
        values = self._token()
        opens = values.get("token") in {each.value for each in branch.tokens} and values.get("adminURL") == branch.url
        return [] if opens else [f"the Secret of tenant {branch.name} has {sorted(values)}, which does not open it"]

    def _open(self, branches: list[TenantRecord]) -> None:
        """The person's part: a token where the object says that it has none."""
        if not self.token_may_be_lost or self.after == "delete" or self._token():
            return
        noted = (self.cluster.get(TENANT.plural, self.name, "branch") or {}).get("metadata", {}).get("annotations", {})
        if len(branches) != 1 or "tenantID" not in noted:
            return
        made = self._cloud.add_token(branches[0].name)
        secret = {"metadata": {"name": self._token_name}, "stringData": {"token": made.value}}
        self.cluster.create("secrets", self.name, secret)

    @property
    def _token_name(self) -> str:
        return f"{TENANT_TOKEN}-{self.organization}"

    def _token(self) -> Mapping[str, str]:
        data = (self.cluster.get("secrets", self.name, self._token_name) or {}).get("data", {})
        return {name: base64.b64decode(value).decode() for name, value in data.items()}

    def _branches(self) -> list[TenantRecord]:
        """Tenants of this round's organization."""
        wanted = re.compile(rf"{self.organization}(-\d+)?")  # numbered where another had the name
        return [each for each in self._cloud.tenants() if wanted.fullmatch(each.name)]

    # --- disturbing ---

    def disturb(self, call: str, **fault: object) -> Fault:
        """Disturb the life's next call of that kind."""
        method, route = call.split(" ")
        whose: Json = {"tenant": self.name}
        if route.startswith(MASTER):
            # All lives share the master: a creation is recognised by its organization, all else by the tenant's id.
            coming = f"{self.name}-branch-{self._round + 1}"
            whose = {"tenant": "master"} | ({"containing": coming} if route == MASTER else {})
            route = route.replace("{provider}", str(self._branches()[0].id) if "{" in route else "")
        kind = fault.pop("kind", FaultKind.REFUSE)
        return self._cloud.fault(method, _pattern(route), kind=FaultKind(str(kind)), **{"count": 1, **whose, **fault})


def name_of(obj: Json) -> str:
    """An object's name."""
    return str(obj["metadata"]["name"])


def _pattern(route: str) -> str:
    parts = ["[^/]+" if part.startswith("{") else part for part in route.split("/")]
    return "/".join(parts) + r"(\.json)?$"


def _of_the_gone(objects: Objects) -> list[str]:
    return [f"{kind.name} {name_of(each)} is left" for kind, listed in objects.items() for each in listed]


def _settled(kind: Kind, obj: Json) -> bool:
    """Whether it says to be in 3scale as its newest spec wants it."""
    status, meta = obj.get("status", {}), obj["metadata"]
    true_ones = {each["type"] for each in status.get("conditions", []) if each["status"] == "True"}
    unversioned = (APPLICATION_AUTH, PROXY_CONFIG_PROMOTE, TENANT)
    current = kind in unversioned or status.get("observedGeneration") == meta["generation"]
    return bool(true_ones & {*_DONE}) and current and len(true_ones) == 1 and "deletionTimestamp" not in meta


def _conditions_text(obj: Json) -> str:
    conditions = [each for each in obj.get("status", {}).get("conditions", []) if each["status"] == "True"]
    return ", ".join(f"{each['type']}: {each.get('message', '')}" for each in conditions) or "nothing"
