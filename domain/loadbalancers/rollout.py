"""The sets of a LoadBalancer: which set is current, and when the other sets are scaled to zero.

    new template --> new set beside the old --all machines ready--> keepalived gate --> others to 0, oldest deleted

The current set has the LoadBalancer's revision, which gives the set's machines priority in keepalived's election. A
rollback gives the former set a *new* revision. If all machines of the current set are ready, the gate opens:

    if one of them holds the virtual address     2 minutes after it took the address
    if none of them holds the address           10 minutes after they became ready
    if it is unknown who holds the address      15 minutes after the set's creation

Only one rollout runs at a time. If the template changes during a rollout, the unfinished set is emptied at once, and
the set that serves stays until the newest set takes over. A set's template never changes, except for the id of a
recreated server group: with the deleted group's id no machine could be created.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from domain.loadbalancers.balancer_world import CreateSet, PatchSet
from domain.loadbalancers.constants import READY_SINCE_ANNOTATION, REVISION_ANNOTATION
from domain.loadbalancers.new_set import highest_revision, next_revision, revision_number, set_document, set_name
from domain.loadbalancers.resources import HAS_MASTER, LoadBalancer, LoadBalancerSet
from domain.loadbalancers.selectors import belongs
from domain.loadbalancers.template_hash import template_hash
from domain.model import Model
from domain.resource import reckonable_timestamp
from domain.writes import JsonPatch, difference

# How long the old machines stay: if a new machine holds the virtual address; if no new machine holds it; if it is
# unknown which machine holds it.
MASTER_STABLE = timedelta(minutes=2)
_MASTER_LACKING = timedelta(minutes=10)
_MASTER_UNKNOWN = timedelta(minutes=15)
# How many empty sets of former templates are kept; yawol keeps all of them.
_SETS_KEPT = 3
_TICK = timedelta(seconds=1)  # Kubernetes stores whole seconds


class Rollout(Model):
    """The next changes of a LoadBalancer and its sets."""

    revise: JsonPatch = {}  # the merge patch of the LoadBalancer's revision, applied first
    create: CreateSet | None = None
    patches: tuple[PatchSet, ...] = ()
    delete: tuple[str, ...] = ()
    status: JsonPatch = {}  # the merge patch of the LoadBalancer's machine counts
    done: bool = False  # the current set is ready, and all other sets have zero replicas
    why: str = ""
    problem: str = ""  # what a person has to correct
    deadline: datetime | None = None  # when the plan may change without any event


class Gate(Model):
    """Whether the old sets may be scaled to zero. If not, `why` has the reason. `opens_at` is None if the time is
    unknown. `ready` is True if all new machines are ready.
    """

    open: bool
    ready: bool = True
    why: str = ""
    opens_at: datetime | None = None


def sets_of(balancer: LoadBalancer, sets: Iterable[LoadBalancerSet]) -> tuple[LoadBalancerSet, ...]:
    """The LoadBalancer's sets, newest revision first."""
    own = (each for each in sets if belongs(each, balancer))
    return tuple(sorted(own, key=lambda each: (-(revision_number(each.revision) or 0), each.metadata.name)))


def plan_rollout(
    balancer: LoadBalancer,
    sets: Sequence[LoadBalancerSet],
    now: datetime,
    *,
    frozen: str = "",
) -> Rollout:
    """The next changes of the `sets`, which are sorted newest first. `frozen` says why no set may be created or scaled
    to zero; it is empty if both are allowed.
    """
    counts = _counts(balancer, sets)
    if balancer.revision and revision_number(balancer.revision) is None:
        problem = f"annotation {REVISION_ANNOTATION} is {balancer.revision!r}, not a revision: correct or remove it"
        return Rollout(status=counts, problem=problem)
    if not balancer.status.port_id:
        return Rollout(status=counts, why="waits for the port with the virtual address")
    hash_ = template_hash(balancer)
    current = next((each for each in sets if each.template_hash == hash_ and not each.metadata.deleting), None)
    if current is None and any(each.template_hash == hash_ for each in sets):
        return Rollout(status=counts, why="waits for the deletion of the former set with this template")
    if current is None:
        if frozen:
            return Rollout(status=counts, problem=frozen, why=frozen)
        revision = next_revision(sets)
        why = "create machines from the new template" if sets else "create machines"
        meta, document = balancer.metadata, set_document(balancer, hash_, revision)
        create = CreateSet(namespace=meta.namespace, name=set_name(meta.name, hash_), document=document)
        return Rollout(revise=_revised(balancer, revision), create=create, status=counts, why=why)
    revision = _revision(balancer, current, sets)
    patches = _current_patch(balancer, current, revision)
    others = [each for each in sets if each.metadata.uid != current.metadata.uid]
    gate = gate_of(balancer, current, now)
    emptied = [] if frozen else _emptied(current, others, gate)
    alone = not any(each.spec.replicas for each in others)
    finished = gate.ready and alone
    return Rollout(
        revise=_revised(balancer, revision),
        patches=(*patches, *(_to_zero(each) for each in emptied)),
        delete=_forgotten(others) if finished else (),
        status=counts,
        done=finished,
        why=frozen or ("" if finished else gate.why),
        problem=frozen,
        deadline=None if alone else gate.opens_at,
    )


def gate_of(balancer: LoadBalancer, current: LoadBalancerSet, now: datetime) -> Gate:
    wanted, status = balancer.spec.replicas, current.status
    if not wanted:
        return Gate(open=True)
    ready, seen = status.ready_replicas or 0, status.replicas or 0
    if seen != wanted or ready != wanted:
        return Gate(open=False, ready=False, why=f"ready machines of {current.metadata.name}: {ready} of {wanted}")
    found = next((each for each in status.conditions if each.type == HAS_MASTER), None)
    moments = [reckonable_timestamp(found.last_transition_time) if found else current.metadata.creation_timestamp]
    if found is None:
        wait, why = _MASTER_UNKNOWN, "it is not known yet which machine holds the virtual address"
    elif found.status == "True":
        wait, why = MASTER_STABLE, "a new machine holds the virtual address, but not for long enough yet"
    else:
        wait, why = _MASTER_LACKING, "no new machine holds the virtual address yet"
        # The time counts from readiness: the set may have been empty or waiting for quota before.
        moments.append(reckonable_timestamp(current.metadata.annotations.get(READY_SINCE_ANNOTATION)))
    since = max((moment for moment in moments if moment), default=None)
    # One second more, because whole seconds are compared.
    opens_at = since + wait + _TICK if since else None
    if opens_at is None or opens_at <= now:
        return Gate(open=True)
    return Gate(open=False, why=why, opens_at=opens_at)


def _revision(balancer: LoadBalancer, current: LoadBalancerSet, sets: Sequence[LoadBalancerSet]) -> int:
    own, others = revision_number(current.revision) or 0, highest_revision(each for each in sets if each is not current)
    mine = revision_number(balancer.revision) or 0
    if own > others:
        return max(own, mine)
    return mine if mine > others else others + 1


def _revised(balancer: LoadBalancer, revision: int) -> JsonPatch:
    if balancer.revision == str(revision):
        return {}
    return {"metadata": {"annotations": {REVISION_ANNOTATION: str(revision)}}}


def _current_patch(balancer: LoadBalancer, current: LoadBalancerSet, revision: int) -> tuple[PatchSet, ...]:
    patch: JsonPatch = {}
    if current.revision != str(revision):
        patch["metadata"] = {"annotations": {REVISION_ANNOTATION: str(revision)}}
    spec: JsonPatch = {}
    if current.spec.replicas != balancer.spec.replicas:
        spec["replicas"] = balancer.spec.replicas
    group = balancer.status.server_group_id or ""
    if current.spec.template.spec.server_group_id != group:
        spec["template"] = {"spec": {"serverGroupID": group}}
    if spec:
        patch["spec"] = spec
    return (_patch(current, patch, "bring up to date"),) if patch else ()


def _emptied(current: LoadBalancerSet, others: Sequence[LoadBalancerSet], gate: Gate) -> list[LoadBalancerSet]:
    filled = [each for each in others if each.spec.replicas and not each.metadata.deleting]
    if gate.open:
        return filled
    serving = max(filled, key=_serves, default=None)
    if serving is None or not serving.status.ready_replicas:
        return []
    return [each for each in filled if each is not serving]


def _serves(each: LoadBalancerSet) -> tuple[bool, int, int]:
    master = any(found.type == HAS_MASTER and found.status == "True" for found in each.status.conditions)
    return (master, each.status.ready_replicas or 0, -(revision_number(each.revision) or 0))


def _to_zero(each: LoadBalancerSet) -> PatchSet:
    return _patch(each, {"spec": {"replicas": 0}}, "scale to zero: another set serves")


def _patch(each: LoadBalancerSet, patch: JsonPatch, note: str) -> PatchSet:
    return PatchSet(namespace=each.metadata.namespace, name=each.metadata.name, patch=patch, note=note)


def _forgotten(others: Sequence[LoadBalancerSet]) -> tuple[str, ...]:
    empty = [
        each for each in others if not (each.spec.replicas or each.status.ready_replicas or each.metadata.deleting)
    ]
    ranked = sorted(empty, key=lambda each: -(revision_number(each.revision) or 0))
    return tuple(each.metadata.name for each in ranked[_SETS_KEPT:])


def _counts(balancer: LoadBalancer, sets: Sequence[LoadBalancerSet]) -> JsonPatch:
    status = balancer.status
    wanted = status.model_copy(
        update={
            "replicas": sum(each.status.replicas or 0 for each in sets),
            "ready_replicas": sum(each.status.ready_replicas or 0 for each in sets),
        }
    )
    change = difference(status, wanted)
    return {"status": change} if change else {}
