"""A ResourceHandle's own lifecycle: whose it is, when it ends, and what is done about it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from claim_domain import NAMES
from claim_scenes import BOUND, KEY, NOW, claim, entry, handle

from domain.claims.evaluator_interface import Fault, HandlePlan
from domain.claims.handle_lifecycle import Handle, HandleEnded, decide
from domain.claims.periodic_evaluation import Cadence
from domain.control_annotations import RETRY
from domain.decision import Decision
from domain.identity import Key
from domain.resource import timestamp

Json = dict[str, Any]
OURS = [NAMES.finalizer]
CLAIM_KEY = Key(kind="ResourceClaim", namespace="user-ada", name="mine", uid="claim-uid")
NAMED = {"resourceHandle": {"name": "guid-b7k2q"}}
CADENCE = Cadence(by_clock=timedelta(minutes=1), refresh=timedelta(hours=1), faulty=timedelta(seconds=30))


def held(each: Json | None = None, **metadata: Any) -> Json:
    """A handle with our finalizer."""
    each = each or handle()
    return {**each, "metadata": {**each["metadata"], "finalizers": OURS, **metadata}}


def world(of: Json, by: Json | None = None, **fields: Any) -> Handle:
    key = CLAIM_KEY if by else None
    common = {"now": NOW, "names": NAMES, "cadence": CADENCE, "shown": by is None, "holder": key}
    return Handle.of(KEY, handle=of, claim=by, **common | fields)


def evaluated(of: Json, plan: HandlePlan | None = None, **fields: Any) -> Handle:
    """Its plan asks for nothing, unless another is given."""
    plan = plan or HandlePlan(spec=of["spec"], handle_status=of.get("status", {}))
    return world(of, read=True, answer=plan, **fields)


def does(decision: Decision) -> list[str]:
    return [action.activity.removeprefix("claims.") for action in decision.actions]


FREE, HELD = held(), held(handle(**BOUND))
GOING = held(deletionTimestamp=timestamp(NOW))
IGNORED = held(labels={NAMES.ignore_label: ""})
DETACHED = claim({"resourceHandle": {"name": "guid-b7k2q", "detached": True}})
OTHER = claim({"resourceHandle": {"name": "guid-other"}})


@pytest.mark.parametrize(
    ("seen", "phase", "actions"),
    [
        (world({}, exists=False), "Deleted", []),
        (world(IGNORED), "Ignored", ["let_go"]),
        (world(held(labels={NAMES.ignore_label: ""}, finalizers=["others"])), "Ignored", []),
        (world(GOING), "Deleting", ["end_handle"]),
        (world(HELD), "Deleting", ["end_handle"]),
        (world(HELD, hold="paused by mia"), "Bound", []),
        (world(HELD, DETACHED), "Deleting", ["end_handle"]),
        (world(HELD, claim(NAMED)), "Bound", []),
        (world(HELD, claim({})), "Bound", ["ask_binder"]),
        (world(HELD, claim({}), asked=True), "Bound", []),
        (world(HELD, OTHER, fresh=False), "Bound", ["observe_again"]),
        (world(HELD, OTHER), "Bound", ["find_duplicate"]),
        (world(HELD, OTHER, duplicate=False), "Bound", []),
        (world(HELD, OTHER, duplicate=True), "Deleting", ["end_handle"]),
        (world(HELD, claim(NAMED), claim_left_alone=True), "Reconciling", ["read_resources"]),
        (world(FREE), "Reconciling", ["read_resources"]),
        (world(FREE, read=True), "Reconciling", ["evaluate_handle"]),
        (world(FREE, begun=({},), begun_upon=FREE, exists=False), "Reconciling", ["take_back"]),
        (world(FREE, lost=True), "Reconciling", ["observe_again"]),
    ],
    ids=[
        "gone",
        "ignored",
        "ignored and let go",
        "being deleted",
        "its claim is gone",
        "held while paused",
        "detached",
        "its claim looks after it",
        "the claim names none",
        "the binder was asked",
        "seen in the cache",
        "another is named",
        "no duplicate",
        "a duplicate",
        "its claim is left alone",
        "free",
        "read",
        "ended while it was made",
        "ended beside it",
    ],
)
def test_whose_a_handle_is_decides_what_is_done(seen: Handle, phase: str, actions: list[str]) -> None:
    decision = decide(seen, NOW)
    assert (decision.phase, does(decision)) == (phase, actions)


@pytest.mark.parametrize("by", [None, DETACHED], ids=["its claim is gone", "detached"])
def test_a_handle_without_its_claim_ends_only_after_a_fresh_observation(by: Json | None) -> None:
    assert does(decide(world(HELD, by, fresh=False), NOW)) == ["observe_again"]
    assert does(decide(world(HELD, by), NOW)) == ["end_handle"]


@pytest.mark.parametrize(("fresh", "hold", "actions"), [(False, "", ["observe_again"]), (True, "", ["end_handle"])])
def test_a_passed_expiry_is_acted_on_only_by_a_fresh_read(fresh: bool, hold: str, actions: list[str]) -> None:
    expired = evaluated(FREE, HandlePlan(end=NOW), fresh=fresh, hold=hold)
    assert does(decide(expired, NOW)) == actions


def test_the_end_of_a_held_handle_is_planned_and_its_resources_are_not_read() -> None:
    of = held(handle(lifespan={"end": timestamp(NOW)}))
    decision = decide(world(of, hold="paused by mia"), NOW)
    assert ([each.summary for each in decision.actions], decision.phase) == (
        ["delete the handle and its resources"],
        "Deleting",
    )


def test_the_intent_is_written_before_anything_is_made_and_what_follows_is_planned() -> None:
    of = held(handle(entry("base")))
    definition = {"kind": "ConfigMap", "metadata": {"name": "base"}}
    spec = {**of["spec"], "vars": {"size": 2}}
    seen = evaluated(of, HandlePlan(spec=spec, creations=((0, definition),)))
    decision = decide(seen, NOW)
    assert (does(decision), decision.planned) == (["put"], ("create ConfigMap base",))
    assert does(decide(seen.stored("ResourceHandle", {**of, "spec": spec}), NOW)) == ["create_resource"]


def test_a_handle_is_taken_in_hand_and_a_retry_is_honoured_in_one_write() -> None:
    fresh = handle(entry("base"))
    requested = {**fresh, "metadata": {**fresh["metadata"], "annotations": {RETRY: "now"}}}
    (write,) = decide(evaluated(requested), NOW).actions
    assert write.after["metadata"]["finalizers"] == OURS  # type: ignore[attr-defined]
    assert "now" in write.after["metadata"]["annotations"].values()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("plan", "fault", "after"),
    [
        ({}, None, timedelta(hours=1)),
        ({"by_clock": True}, None, timedelta(minutes=1)),
        ({"by_clock": True}, Fault(reason="Bug", message="ours"), timedelta(seconds=30)),
    ],
)
def test_a_handle_is_observed_again_by_the_clock_and_soon_where_it_is_at_fault(
    plan: Json, fault: Fault | None, after: timedelta
) -> None:
    seen = evaluated(FREE, HandlePlan(spec=FREE["spec"], **plan), unevaluated=(fault,) if fault else ())
    assert decide(seen, NOW).deadline == NOW + after


@pytest.mark.parametrize(
    ("refused", "finalizers", "gone", "why"),
    [
        ((), OURS, True, ""),
        ((), [*OURS, "others"], False, "it has expired; waits for other finalizers"),
        (("ConfigMap a: forbidden",), OURS, False, "it has expired; ConfigMap a: forbidden"),
    ],
)
def test_an_end_waits_for_what_refuses_to_go(
    refused: tuple[str, ...], finalizers: list[str], gone: bool, why: str
) -> None:
    end = HandleEnded(why="it has expired", refused=refused)
    decision = decide(world(held(finalizers=finalizers), end=end), NOW)
    assert (decision.gone, decision.actions) == (gone, ())
    assert gone or decision.why == why
