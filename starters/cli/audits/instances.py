"""Compares labels, EC2 and lifecycles of instances. A difference counts only if two observations in a row show it.

- AWSMachines and Nodes are compared with EC2 (200 instances a call), AWSMachinePools with Auto Scaling (100 groups);
- lifecycles of instances that no object names are reported;
- with `--thorough`, queues and rules that a worker would correct are reported.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from domain.identity import Key, Kind, task_queue
from domain.instances import AWS_MACHINE, AWS_MACHINE_POOL, EC2_INSTANCE, NODE
from domain.instances.constants import GROUP_STATE_LABEL, INSTANCE_WORKFLOW, STATE_LABEL
from domain.instances.event_verification import Facts
from domain.instances.machine_pool_labels import group_differs
from domain.instances.resources import AWSMachine, AWSMachinePool, Node
from domain.instances.workflow_ids import InstanceKey
from domain.reading import read_all
from engine.errors import Absent
from starters.cli.audits import Finding, found_twice
from starters.cli.served_queues import places_of

if TYPE_CHECKING:
    from activities.aws.queue_account_roles import Places
    from activities.instances.aws_queries import ServedPlaces
    from activities.instances.bulk_queries import Bulk, BulkGroups
    from domain.instances.served_queues import Place
    from engine.kube import JsonObject
    from starters.cli.session import Session

AREA = "instances"
APART = 5.0
# Longer than the ten minutes after which the lifecycle of an unmatched instance ends.
GIVEN_UP_AFTER = timedelta(minutes=15)


async def audit(session: Session, *, thorough: bool) -> list[Finding]:
    from activities.aws.queue_account_roles import Places
    from activities.instances.aws_queries import ServedPlaces

    known = await places_of(session)
    if not known:
        return list(unserved(await open_lifecycles(session)))
    callers = Places(connections=8, observing=True)
    served = ServedPlaces(known, callers)
    found = await found_twice(partial(_look, session, served), APART)
    return [*found, *(await asyncio.to_thread(_topologies, session, known, callers) if thorough else ())]


async def _look(session: Session, served: ServedPlaces) -> list[Finding]:
    from activities.instances.bulk_queries import ask_about_all, ask_about_groups

    readable, malformed = read_all(AWSMachine, await _objects(session, AWS_MACHINE))
    pools, _ = read_all(AWSMachinePool, await _objects(session, AWS_MACHINE_POOL))
    nodes, _ = read_all(Node, await _objects(session, NODE) if session.settings.instances_nodes else ())
    machines: dict[str, AWSMachine | Node] = {each.instance_id: each for each in readable if each.instance_id}
    named = {*machines, *(each for pool in pools for each in pool.instance_ids)}
    alone = {each.instance_id: each for each in nodes if each.instance_id and each.instance_id not in named}
    machines, named = {**machines, **alone}, {*named, *alone}
    bulk = await ask_about_all(served, machines, datetime.now(UTC), lambda _: None)
    groups = await ask_about_groups(served, {pool.group for pool in pools if pool.group}, lambda _: None)
    odd = (Finding(area=AREA, subject=each.key.path, problem=each.problem, advice="correct it") for each in malformed)
    open_ = await open_lifecycles(session)
    problems = [*findings(machines, bulk), *pool_findings(pools, groups)]
    return [*odd, *problems, *strangers(open_, named, datetime.now(UTC))]


def unserved(open_: Collection[object]) -> Iterator[Finding]:
    if open_:
        yield Finding(
            area=AREA,
            subject="PERDURE_INSTANCES_QUEUES",
            problem=f"it names no queue, but {len(open_)} instances have lifecycles: nothing was compared",
            advice="set it for this command as it is set for the worker",
        )


def findings(machines: Mapping[str, AWSMachine | Node], bulk: Bulk) -> Iterator[Finding]:
    for trouble in bulk.troubles:
        yield Finding(area=AREA, subject="EC2", problem=trouble, advice="correct this; no instance there was compared")
    for instance, machine in machines.items():
        key, facts = bulk.facts.get(instance, (None, None))
        if key is None or facts is None:
            continue
        problem = _problem(machine, key, facts)
        if problem:
            where = f"{key.account}/{key.region}/{instance}"
            advice = f"perdure why {INSTANCE_WORKFLOW} {where}; does `perdure events` run?"
            yield Finding(area=AREA, subject=machine.key.path, problem=problem, advice=advice)


def pool_findings(pools: Iterable[AWSMachinePool], groups: BulkGroups) -> Iterator[Finding]:
    for trouble in groups.troubles:
        yield Finding(
            area=AREA, subject="Auto Scaling", problem=trouble, advice="correct this; no group there was compared"
        )
    for pool in pools:
        found = groups.instances.get(pool.group) if pool.group else None
        if pool.group is not None and found is not None and group_differs(pool, found):
            labelled = pool.metadata.labels.get(GROUP_STATE_LABEL, "nothing")
            advice = f"perdure why {pool.group.lifecycle.kind} {pool.group.lifecycle.namespace}/{pool.group.group}"
            says = f"the label says {labelled}"
            problem = f"its label or annotation does not match its instances in Auto Scaling ({len(found)}); {says}"
            yield Finding(area=AREA, subject=pool.key.path, problem=problem, advice=f"{advice}; is a worker running?")


def _problem(machine: AWSMachine | Node, key: InstanceKey, facts: Facts) -> str:
    labelled = machine.metadata.labels.get(STATE_LABEL, "nothing")
    if not facts.found:
        return "" if labelled == "terminated" else f"EC2 does not know {key.instance_id}, and its label says {labelled}"
    state = facts.state.value if facts.state else "nothing"
    return "" if labelled == state else f"EC2 reports {state} for {key.instance_id}, and its label says {labelled}"


def strangers(open_: Iterable[tuple[Key, datetime]], named: set[str], moment: datetime) -> Iterator[Finding]:
    for key, since in open_:
        if key.name not in named and moment - since > GIVEN_UP_AFTER:
            problem = "no AWSMachine, AWSMachinePool or served Node has this instance, and its lifecycle is open"
            advice = "it ends by itself ten minutes after its last event; perdure why says what it waits for"
            yield Finding(area=AREA, subject=key.path, problem=problem, advice=advice)


async def open_lifecycles(session: Session) -> list[tuple[Key, datetime]]:
    ours = task_queue(EC2_INSTANCE.area, session.settings.cluster)
    query = f"WorkflowType = '{INSTANCE_WORKFLOW}' AND ExecutionStatus = 'Running'"
    found = []
    async for each in session.temporal.list_workflows(query):
        kind, account, region, name = (*each.id.split("/", 3), "", "", "")[:4]
        if name and kind == INSTANCE_WORKFLOW and each.task_queue == ours:
            key = InstanceKey(account=account, region=region, instance_id=name).lifecycle_in(session.settings.cluster)
            found.append((key, each.start_time))
    return found


async def _objects(session: Session, kind: Kind) -> list[JsonObject]:
    try:
        return (await session.kube.list(kind)).items
    except Absent:
        return []


def _topologies(session: Session, known: Sequence[Place], callers: Places) -> list[Finding]:
    from activities.instances.event_topology_upkeep import TopologyActivities
    from domain.instances.served_queues import with_queues

    prefix, queues = session.settings.instances_group_prefix, with_queues(known)
    upkeep = TopologyActivities(queues, callers.caller, group_prefix=prefix, observing=True)
    found = []
    for place in queues:
        looked_up = upkeep.keep(place, dry=True)
        problems = [*looked_up.changes, *([looked_up.trouble] if looked_up.trouble else [])]
        advice = "a worker with PERDURE_INSTANCES_QUEUES corrects it; is one running, with the rights to do so?"
        found += [Finding(area=AREA, subject=str(place), problem=each, advice=advice) for each in problems]
    return found
