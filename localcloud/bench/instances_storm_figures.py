"""Row i of `perdure bench instances`: the storm's figures."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain

from domain.instances import constants as c
from domain.instances.interruption_policy import Reaction
from engine.kube import POD
from engine.kube.json import mapping, text
from localcloud.aws.contract import Call
from localcloud.bench.figures import Figure, percentile
from localcloud.bench.instances_storm_fleet import (
    CAUSES,
    CONTROL_PLANE,
    GROUPS,
    HOOK_SECONDS,
    LEFT,
    LIMITS,
    MEMBERS_OF_CONTROL_PLANE,
    REPLACED_FIRST,
    RETURNS,
    Member,
    Storm,
)
from localcloud.bench.instances_storm_forged import Forged
from localcloud.bench.laboratory import Laboratory

Requests = Counter[tuple[str, str, str]]

# Nodes and Machines are watched separately, and a cordon counts towards the limit a little before it is written.
_SKEW_SECONDS = 1.0
_PERDURE = re.compile(r"(^|\s)perdure($|\s)")


# What is not done yet.


def unsettled(on: Storm, affected: Sequence[Member]) -> list[str]:
    found = []
    for each in affected:
        left, name, seen = LEFT[each.reaction], each.instance, on.seen
        ended = each.reaction is Reaction.TERMINATE_INSTANCE
        missing = [
            *(["deletion"] if left.deleted and name not in seen.gone else []),
            *(["cordon"] if left.cordoned and not seen.cordoned.get(name) else []),
            *(["taint"] if left.tainted and not seen.tainted.get(name) else []),
            *(["label"] if not name or not on.first_label(each) else []),
            *(["end"] if ended and on.labels.first(name, c.STATE_LABEL, "terminated") is None else []),
            *(["release"] if each.cause in RETURNS and seen.marked(name) else []),
            *(["InService"] if each.cause == "launch" and not _in_service(on, each) else []),
        ]
        found += [f"{each.name} ({each.cause}): no {what}" for what in missing]
    return found


def mislabelled(on: Storm, forged: Sequence[Forged]) -> list[str]:
    """Instances whose labels are wrong. A label may show a forged state for half a minute, until EC2 is queried."""
    names = {each.member.instance: each.member.name for each in forged}
    return [f"{whole}: {on.state(name)}" for name, whole in names.items() if on.state(name) != "running"]


def _in_service(on: Storm, member: Member) -> bool:
    return any(each["LifecycleState"] == "InService" for each in on.group(member))


# Figures.


async def figures(
    on: Storm,
    affected: Sequence[Member],
    forged: Sequence[Forged],
    mark: int,
    replicas: Mapping[tuple[str, str], int],
) -> list[Figure]:
    calls = [each for each in on.lab.emulator.ledger(recent=True).recent if _PERDURE.search(each.user_agent)]
    wrong = await _wrong(on, affected, _requests_by_name(on.lab, mark))
    return [
        *_reactions(affected, wrong),
        _at_once(on, affected),
        _control_planes(on, affected),
        _replaced_first(on, affected, replicas),
        hooks_figure(affected, calls, "hook"),
        hooks_figure(affected, calls, "launch"),
        _terminations(on, affected, calls),
        await _forged(on, forged, calls),
        *_seconds(on, affected),
    ]


def _reactions(affected: Sequence[Member], wrong: Mapping[str, list[str]]) -> list[Figure]:
    causes = Counter(each.cause for each in affected).most_common()
    late = [each for each in affected if each.late]
    right = sum(each.instance not in wrong for each in late)
    seconds = sorted(each.late for each in late) or [0.0]
    return [
        Figure(
            row="i",
            what=f"{len(affected)} instances on which AWS acts: right reactions, exactly once each",
            measured=f"{sum(each.instance not in wrong for each in affected)} of {len(affected)}",
            goal="all",
            note="; ".join(
                [", ".join(f"{cause} {number}" for cause, number in causes), *list(chain(*wrong.values()))[:5]]
            ),
        ),
        Figure(
            row="i",
            what=f"events that come {seconds[0]:.0f} to {seconds[-1]:.0f} s late: right reactions, exactly once each",
            measured=f"{right} of {len(late)}",
            goal="all",
        ),
    ]


def _at_once(on: Storm, affected: Sequence[Member]) -> Figure:
    most = {cluster: _most_at_once(on, affected, cluster) for cluster in LIMITS}
    over = sum(_exceeded(on, affected, cluster) for cluster in LIMITS)
    return Figure(
        row="i",
        what="highest number of machines of a node group disrupted at once by scheduled events, in clusters "
        f"{', '.join(LIMITS)}; machines disrupted while their group had no room",
        measured=f"{', '.join(map(str, most.values()))}; {over}",
        goal=f"{', '.join(f'= {limit}' for limit in LIMITS.values())}; 0",
        note=", ".join([f"{on.replaced} machines ended", *_below(on, affected, most)]),
    )


def _below(on: Storm, affected: Sequence[Member], most: Mapping[str, int]) -> list[str]:
    """For the clusters that did not use their limits fully: when each machine's disruption began and ended."""
    found = []
    for cluster in (each for each, number in most.items() if number < LIMITS[each]):
        for group in GROUPS:
            for each in affected:
                if (each.cluster, each.group) == (cluster, group) and (span := spans(on, [each])):
                    begin, end = (moment - each.since for moment in span[0])
                    found.append(f"{group} {each.cause} at {each.since % 10_000:.0f}: {begin:.0f} to {end:.0f} s")
    return found


def _control_planes(on: Storm, affected: Sequence[Member]) -> Figure:
    members = [each for each in affected if each.group == CONTROL_PLANE]
    most, unwell = 0, 0
    for cluster in {each.cluster for each in members}:
        own = [each for each in members if each.cluster == cluster]
        most = max(most, _overlapping(spans(on, own)))
        unwell += sum(_unwell(on, each, moment) for each in own for moment, _ in spans(on, [each]))
    return Figure(
        row="i",
        what=f"{len(members)} machines of control planes, retired at once: highest number disrupted at once; disrupted "
        "while another machine or its etcd member was not healthy",
        measured=f"{most}; {unwell}",
        goal="= 1; 0",
    )


def _unwell(on: Storm, taken: Member, moment: float) -> bool:
    """Whether one of the two other control-plane machines is missing, unhealthy, or disrupted."""
    seen, well = on.seen, 0
    for each in on.members.values():
        name = each.instance
        if (each.cluster, each.group) == (taken.cluster, CONTROL_PLANE) and each is not taken:
            until = min([begin for begin, _ in spans(on, [each])], default=float("inf"))
            well += seen.well.get(name, float("inf")) <= moment < min(until, seen.gone.get(name, float("inf")))
    return well < MEMBERS_OF_CONTROL_PLANE - 1


def _replaced_first(on: Storm, affected: Sequence[Member], replicas: Mapping[tuple[str, str], int]) -> Figure:
    seen = on.seen
    wanted = [each for each in affected if (each.cluster, each.cause) == (REPLACED_FIRST, "ending")]
    wanted = [each for each in wanted if each.group in GROUPS]
    ready = [each for each in wanted if _replacement_ready(on, each)]
    changed = [
        f"{'/'.join(where)} {seen.replicas.get(where)}"
        for where, had in replicas.items()
        if seen.replicas.get(where) != had
    ]
    waits = [seen.deleted[each.instance] - seen.replacing[each.instance] for each in ready]
    return Figure(
        row="i",
        what="Machines to be replaced before their deletion: those whose replacement was ready; MachineDeployments "
        "whose number of replicas differs afterwards",
        measured=f"{len(ready)} of {len(wanted)}; {len(changed)}",
        goal="all; 0",
        note=", ".join([f"requested at most {max(waits, default=0.0):.1f} s before deletion", *changed]),
    )


def _replacement_ready(on: Storm, member: Member) -> bool:
    seen, name = on.seen, member.instance
    requested_at, deleted = seen.replacing.get(name), seen.deleted.get(name)
    if requested_at is None or deleted is None:
        return False
    younger = (
        each.instance for each in on.members.values() if (each.cluster, each.group) == (member.cluster, member.group)
    )
    return any(requested_at <= seen.well.get(each, 0.0) <= deleted for each in younger if each != name)


def hooks_figure(affected: Sequence[Member], calls: Sequence[Call], cause: str) -> Figure:
    hooked = [each for each in affected if each.cause == cause]
    succeeded = [each for each in calls if each.action == "CompleteLifecycleAction" and each.status == 200]
    completed = Counter(name for each in succeeded for name in each.named)
    once = sum(completed[each.hooked] == 1 for each in hooked)
    done = {name: each.at for each in succeeded for name in each.named}
    held = [(done[each.hooked] - each.since, each.late) for each in hooked if each.hooked in done]
    longest, late = max(held, default=(0.0, 0.0))
    beats = [each for each in calls if each.action == "RecordLifecycleActionHeartbeat" and each.status == 200]
    mine = sum(each.hooked in beat.named for beat in beats for each in hooked)
    what = "terminating" if cause == "hook" else "launching"
    return Figure(
        row="i",
        what=f"{len(hooked)} {what} hooks of {HOOK_SECONDS} s: completed exactly once; the longest wait",
        measured=f"{once}; {longest:.1f} s",
        goal=f"{len(hooked)}; < {HOOK_SECONDS} s",
        note=f"{sum(completed[each.hooked] for each in hooked)} completions, {mine} heartbeats; the event of the "
        f"longest wait came {late:.0f} s late",
    )


def _terminations(on: Storm, affected: Sequence[Member], calls: Sequence[Call]) -> Figure:
    ended = Counter(name for each in calls if each.action == "TerminateInstances" for name in each.named)
    wanted = [each.instance for each in affected if each.reaction is Reaction.TERMINATE_INSTANCE]
    return Figure(
        row="i",
        what=f"{len(wanted)} instances of drained Nodes: terminated by Perdure exactly once; other terminations",
        measured=f"{sum(ended[each] == 1 for each in wanted)}; {sum((ended - Counter(wanted)).values())}",
        goal=f"{len(wanted)}; 0",
    )


async def _forged(on: Storm, forged: Sequence[Forged], calls: Sequence[Call]) -> Figure:
    now = max((each.at for each in calls), default=0.0)
    hurt = [each for each in forged if await _touched(on, each.member)]
    labelled = [each for each in forged if on.labels.value(each.member.instance, c.INTERRUPTION_LABEL)]
    # A forged label counts as an effect only after the time within which it is corrected.
    waiting = {each.member.instance for each in labelled if each.label_stays(now)}
    hurt += [each for each in labelled if each.member.instance not in waiting]
    instances = {each.member.instance for each in forged}
    corrected = sum(_was_corrected(on, each) for each in instances)
    kinds = {each.kind for each in forged}
    return Figure(
        row="i",
        what=f"{sum(len(each.bodies) for each in forged)} forged messages of {len(kinds)} kinds about {len(instances)} "
        "instances: how many had an effect",
        measured=len({(each.kind, each.member.instance) for each in hurt}),
        goal="0",
        note=", ".join(
            [
                f"instances whose labels EC2's answer corrected: {corrected}",
                f"instances whose forged label Perdure still has time to correct: {len(waiting)}",
                *dict.fromkeys(f"{each.member.name} ({each.kind})" for each in hurt[:3]),
            ]
        ),
    )


def _was_corrected(on: Storm, instance: str) -> bool:
    states = ("stopping", "stopped", "shutting-down", "terminated")
    return any(on.labels.first(instance, c.STATE_LABEL, each) is not None for each in states)


def _seconds(on: Storm, affected: Sequence[Member]) -> list[Figure]:
    timely = [each for each in affected if not each.late]
    label = [
        seen - each.since
        for each in timely
        if CAUSES[each.cause].label == c.INTERRUPTION_LABEL and (seen := on.first_label(each))
    ]
    cordon = [
        on.seen.cordoned[each.instance][0] - each.since
        for each in timely
        if LEFT[each.reaction].cordoned
        and not (each.limited or each.cause in ("hook", "spot-hibernate"))
        and each.instance in on.seen.cordoned
    ]
    return [
        Figure(
            row="i",
            what=f"from AWS's action to the {what}, p50",
            measured=round(percentile(found, 0.5), 3),
            unit="s",
            goal=goal,
            note=f"p95 {percentile(found, 0.95):.2f} s of {len(found)}",
        )
        for what, found, goal in (("label", label, "≤ 0.1"), ("cordon", cordon, "≤ 0.5"))
    ]


async def _wrong(on: Storm, affected: Sequence[Member], requests: Requests) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in affected:
        left, name, seen = LEFT[each.reaction], each.instance, on.seen
        was_emptied = on.emptied.get(name, not await on.exists(POD, each.cluster, name))
        returns = int(each.cause in RETURNS)
        counted = {
            "deletions": (requests["delete", "machines", name], int(left.deleted)),
            "cordons": (len(seen.cordoned.get(name, ())), int(left.cordoned)),
            "taints": (len(seen.tainted.get(name, ())), int(left.tainted)),
            "releases": (len(seen.released.get(name, ())), returns),
            "labels": (int(on.first_label(each) is not None), 1),
            "Pods gone": (int(was_emptied), int(was_emptied if left.emptied is None else left.emptied)),
        }
        differs = [
            f"{each.name} ({each.cause}): {what} {there} instead of {wanted}"
            for what, (there, wanted) in counted.items()
            if there != wanted
        ]
        if differs:
            found[name] = differs
    return found


async def _touched(on: Storm, member: Member) -> bool:
    name, seen = member.instance, on.seen
    return (
        name in seen.cordoned
        or name in seen.tainted
        or name in seen.deleted
        or not await on.exists(POD, member.cluster, name)
        or on.state(name) != "running"
    )


def spans(on: Storm, members: Sequence[Member]) -> list[tuple[float, float]]:
    """When each machine is disrupted: from its cordon, replacement or deletion until it is gone or used again."""
    seen, found = on.seen, list[tuple[float, float]]()
    for each in members:
        name = each.instance
        begun = [*seen.cordoned.get(name, ())]
        begun += [when for when in (seen.replacing.get(name), seen.deleted.get(name)) if when]
        if begun:
            found.append((min(begun), _end(on, name)))
    return found


def _end(on: Storm, name: str) -> float:
    released = on.seen.released.get(name)
    return released[0] if released else on.seen.gone.get(name, float("inf"))


def _most_at_once(on: Storm, affected: Sequence[Member], cluster: str) -> int:
    most = 0
    for group in GROUPS:
        most = max(most, _overlapping(spans(on, _scheduled(affected, cluster, group))))
    return most


def _overlapping(found: Sequence[tuple[float, float]]) -> int:
    return max((sum(begin <= moment < end for begin, end in found) for moment, _ in found), default=0)


def _exceeded(on: Storm, affected: Sequence[Member], cluster: str) -> int:
    count = 0
    for group in GROUPS:
        scheduled = _scheduled(affected, cluster, group)
        own = spans(on, scheduled)
        taken = [each for each in affected if (each.cluster, each.group) == (cluster, group) and each not in scheduled]
        others = [(begin + _SKEW_SECONDS, end - _SKEW_SECONDS) for begin, end in spans(on, taken)]
        for moment, _ in own:
            lasting = sum(begin < moment < end for begin, end in (*own, *others))
            count += lasting >= LIMITS[cluster]
    return count


def _scheduled(affected: Sequence[Member], cluster: str, group: str) -> list[Member]:
    own = (each for each in affected if (each.cluster, each.group) == (cluster, group))
    return [each for each in own if each.limited and each.reaction is not Reaction.TAINT]


def _requests_by_name(lab: Laboratory, mark: int) -> Requests:
    found: Requests = Counter()
    with lab.deployment.log("audit").open("rb") as log:
        log.seek(mark)
        for line in log:
            with suppress(ValueError):
                entry = json.loads(line)
                if text(entry, "userAgent").startswith("perdure/") and "(bench)" not in text(entry, "userAgent"):
                    reference = mapping(entry, "objectRef")
                    found[text(entry, "verb"), text(reference, "resource"), text(reference, "name")] += 1
    return found
