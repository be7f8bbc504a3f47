"""Which changes of federated roles and accesses wake their own lifecycles.

`domain/accounts/relations.py` says which other lifecycles they wake. An access is also woken when its role's workflow
writes the annotation `lastRoleUpdate`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client import Metric

from domain import control_annotations
from domain.accounts import AWS_FEDERATED_ACCOUNT_ACCESS, AWS_FEDERATED_ROLE
from domain.accounts.constants import FINALIZER
from domain.accounts.federated import ACCOUNT_LABEL, LAST_ROLE_UPDATE, ROLE_LABEL, UID_LABEL
from domain.accounts.federated.relations import is_settled
from domain.accounts.federated.resources import AWSFederatedAccountAccess, AWSFederatedRole, RoleState
from domain.accounts.relations import RELATIONS
from domain.resource import ObjectMeta
from engine.kube.json import JsonObject
from engine.kube.reflector import Followed
from starters.watch.gauges import lifecycles
from starters.watch.projection import View, chosen, generation, others_finalizers
from starters.watch.projection_index import Index
from starters.watch.watched_kinds import Watched

AREA = "accounts"

_LABELS = (UID_LABEL, ACCOUNT_LABEL, ROLE_LABEL)


def read_role(obj: JsonObject) -> View:
    role = AWSFederatedRole.model_validate(obj)
    meta, state = role.metadata, role.status.state
    validated = role.status.observed_generation == meta.generation
    has_finalizer, retried = FINALIZER in meta.finalizers, bool(control_annotations.retry_wanted(meta))
    return View(
        fingerprint=(
            generation(obj),
            others_finalizers(obj, FINALIZER),
            has_finalizer,
            chosen(meta.annotations, control_annotations.LEVERS),
            state,
            validated,
        ),
        settled=state == RoleState.VALID and validated and has_finalizer and not retried,
        facts={"phase": _phase(meta, state or "New")},
        model=role,
    )


def read_access(obj: JsonObject) -> View:
    access = AWSFederatedAccountAccess.model_validate(obj)
    annotations, status = access.metadata.annotations, access.status
    return View(
        fingerprint=(
            generation(obj),
            others_finalizers(obj, FINALIZER),
            FINALIZER in access.metadata.finalizers,
            chosen(annotations, control_annotations.LEVERS),
            chosen(access.metadata.labels, _LABELS),
            status.state,
            status.granted,
            status.console_url,
        ),
        handed=(annotations.get(LAST_ROLE_UPDATE, ""),),
        settled=is_settled(access),
        facts={"phase": _phase(access.metadata, status.state or "New")},
        model=access,
    )


def _phase(meta: ObjectMeta, state: str) -> str:
    if meta.deleting:
        return "Deleting"
    return "Paused" if control_annotations.paused(meta) else state


def federated_gauges(index: Index) -> Iterator[Metric]:
    kinds = (AWS_FEDERATED_ROLE, AWS_FEDERATED_ACCOUNT_ACCESS)
    yield lifecycles(Counter((kind.name, known.fact("phase")) for kind in kinds for known in index.all(kind.name)))


GAUGES = federated_gauges
WATCHED = (
    Watched(Followed(AWS_FEDERATED_ROLE), read=read_role, relations=RELATIONS),
    Watched(Followed(AWS_FEDERATED_ACCOUNT_ACCESS), read=read_access, relations=RELATIONS),
)
