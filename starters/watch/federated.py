"""What is watched of federated access: roles and accesses.

| change of | wakes, besides the object itself |
|---|---|
| AWSFederatedRole: spec, deletion, coming and going | the accesses that name it |
| AWSFederatedAccountAccess: new, gone, while its role is being deleted | that role |
| AWSFederatedAccountAccess: gone | the claims of its namespace that are being deleted, which wait for it |
| the Secret that an access waits for | the accesses that name it |

A customer's Secret is watched by its name while an access waits for something, and only its version is kept.
An access whose role went while nobody watched is woken after the first list. The stamp that a role's workflow writes on
its accesses is news to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

from prometheus_client import Metric

from domain import levers
from domain.accounts import ACCOUNT_CLAIM, AWS_FEDERATED_ACCOUNT_ACCESS, AWS_FEDERATED_ROLE
from domain.accounts.constants import FINALIZER
from domain.accounts.federated import ACCOUNT_LABEL, LAST_ROLE_UPDATE, ROLE_LABEL, UID_LABEL
from domain.accounts.federated.access_status import SYNCED
from domain.accounts.federated.resources import AccessState, RoleState
from domain.identity import Key
from engine.kube import SECRET
from engine.kube.json import JsonObject, at, mapping, sequence, text
from starters.watch.gauges import lifecycles
from starters.watch.index import Index
from starters.watch.kinds import Watched
from starters.watch.projection import Projection, View, chosen, generation, others_finalizers

AREA = "accounts"

_LABELS = (UID_LABEL, ACCOUNT_LABEL, ROLE_LABEL)


def read_role(obj: JsonObject) -> View:
    """An AWSFederatedRole."""
    annotations, status = mapping(obj, "metadata", "annotations"), mapping(obj, "status")
    state, judged = text(status, "state"), at(status, "observedGeneration") == generation(obj)
    return View(
        fingerprint=(
            generation(obj),
            others_finalizers(obj, FINALIZER),
            chosen(annotations, levers.LEVERS),
            state,
            judged,
        ),
        settled=state == RoleState.VALID and judged and _kept(obj) and not _retry_wanted(annotations),
        facts={"content": str(generation(obj)), "phase": _phase(obj, state or "New")},
    )


def read_access(obj: JsonObject) -> View:
    """An AWSFederatedAccountAccess."""
    annotations, status = mapping(obj, "metadata", "annotations"), mapping(obj, "status")
    state, granted = text(status, "state"), text(status, "granted")
    named, synced = mapping(obj, "spec", "awsFederatedRole"), _synced(status)
    settled = state == AccessState.READY and bool(granted) and synced and _kept(obj) and not _retry_wanted(annotations)
    waits = not settled or bool(text(obj, "metadata", "deletionTimestamp"))
    return View(
        fingerprint=(
            generation(obj),
            others_finalizers(obj, FINALIZER),
            chosen(annotations, levers.LEVERS),
            chosen(mapping(obj, "metadata", "labels"), _LABELS),
            state,
            granted,
            text(status, "consoleURL"),
        ),
        handed=(text(annotations, LAST_ROLE_UPDATE),),
        settled=settled,
        facts={
            "role": f"{text(named, 'namespace')}/{text(named, 'name')}",
            "phase": _phase(obj, state or "New"),
            "secret": text(obj, "spec", "awsCustomerCredentialSecret", "name") if waits else "",
        },
    )


def read_key(obj: JsonObject) -> View:
    """A customer's Secret: that it is there, and its version."""
    return View((text(obj, "metadata", "resourceVersion"),), settled=True)


def _synced(status: Mapping[str, object]) -> bool:
    """Whether the last renewal was not refused."""
    conditions = sequence(status, "conditions")
    return not any((text(c, "type"), text(c, "status")) == (SYNCED, "False") for c in conditions)


def _kept(obj: JsonObject) -> bool:
    return FINALIZER in sequence(obj, "metadata", "finalizers")


def _retry_wanted(annotations: Mapping[str, object]) -> bool:
    token = text(annotations, levers.RETRY)
    return bool(token) and token != text(annotations, levers.RETRIED)


def _phase(obj: JsonObject, state: str) -> str:
    if text(obj, "metadata", "deletionTimestamp"):
        return "Deleting"
    return "Paused" if levers.is_paused(mapping(obj, "metadata", "annotations")) else state


def role_dependents(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
    """The accesses of a role."""
    if before and after and (before.deleting, before.fact("content")) == (after.deleting, after.fact("content")):
        return set()
    sides = [side for side in (before, after) if side is not None]
    return {access.key for side in sides for access in _accesses(side, index)}


def access_dependents(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
    """The role of an access, while it waits for its accesses to go; and claims that do."""
    claims = _ending_claims(before, index) if before and after is None else set()
    return claims | _ending_roles(before, after, index)


def _ending_claims(access: Projection, index: Index) -> set[Key]:
    claims = index.all(ACCOUNT_CLAIM.name)
    return {each.key for each in claims if each.deleting and each.key.namespace == access.key.namespace}


def _ending_roles(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
    if before and after and before.fact("role") == after.fact("role"):
        return set()
    names = {side.fact("role") for side in (before, after) if side is not None}
    roles = (index.get(AWS_FEDERATED_ROLE.name, *name.split("/", 1)) for name in names)
    return {role.key for role in roles if role is not None and role.deleting}


def key_dependents(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
    """The accesses that wait for a customer's Secret."""
    known = after or before
    named = index.find(AWS_FEDERATED_ACCOUNT_ACCESS.name, "secret", known.key.name) if known else []
    return {each.key for each in named if known and each.key.namespace == known.key.namespace}


def keys_named(access: Projection) -> tuple[Watched, ...]:
    """The Secret that an access waits for; of its own namespace, whatever it says."""
    name = access.fact("secret")
    return (_key(access.key.namespace, name),) if name else ()


_KEYS = Watched(
    kind=SECRET,
    name="keys for federated access",
    field_selector="type!=helm.sh/release.v1",
    read=read_key,
    dependents=key_dependents,
    has_workflow=False,
    metadata_only=True,
)


@cache
def _key(namespace: str, name: str) -> Watched:
    return replace(
        _KEYS,
        name=f"key for federated access {namespace}/{name}",
        namespace=namespace,
        field_selector=f"metadata.name={name}",
        wider=_KEYS,
    )


def without_role(index: Index) -> set[Key]:
    """Accesses whose role does not exist."""
    return {
        access.key
        for access in index.all(AWS_FEDERATED_ACCOUNT_ACCESS.name)
        if index.get(AWS_FEDERATED_ROLE.name, *access.fact("role").split("/", 1)) is None
    }


def _accesses(role: Projection, index: Index) -> list[Projection]:
    return index.find(AWS_FEDERATED_ACCOUNT_ACCESS.name, "role", f"{role.key.namespace}/{role.key.name}")


def federated_gauges(index: Index) -> Iterator[Metric]:
    """How many there are, by phase."""
    kinds = (AWS_FEDERATED_ROLE, AWS_FEDERATED_ACCOUNT_ACCESS)
    yield lifecycles(Counter((kind.name, known.fact("phase")) for kind in kinds for known in index.all(kind.name)))


GAUGES = federated_gauges
WATCHED = (
    Watched(kind=AWS_FEDERATED_ROLE, read=read_role, dependents=role_dependents, missed_by=without_role),
    Watched(kind=AWS_FEDERATED_ACCOUNT_ACCESS, read=read_access, dependents=access_dependents, declares=keys_named),
)
