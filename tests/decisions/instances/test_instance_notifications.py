"""Notifications of an InterruptionPolicy: what is sent when, to whom, and in which words."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from instance_scenes import (
    ACCOUNT,
    ID,
    REGION,
    at,
    facts,
    hook,
    machine,
    observed,
    owner,
    record,
    scheduled,
    spot,
    state,
)

from domain.control_annotations import PAUSED
from domain.instances.actions import AskInstance, CountRefuted, EndHook, Notify, ReleaseNode
from domain.instances.ec2_answers import answered
from domain.instances.event_record import cordoned, fold, hooks_confirmed
from domain.instances.event_verification import Facts
from domain.instances.hook_timeouts import HookTiming
from domain.instances.instance_lifecycle import decide_instance, work_for_instance
from domain.instances.interruption_policy import CauseSort, Channel, Reaction, ReactionPolicy
from domain.instances.observed import InstanceWorld
from domain.instances.resources import InterruptionPolicy
from domain.instances.webhook_notifications import (
    FIELDS,
    TEMPLATE,
    json_body,
    sentence,
    slack_body,
    teams_body,
    templated_body,
)
from domain.refusal import ErrorType, Refusal
from domain.runner import State

CHAT = Channel(name="chat", causes=(CauseSort.SPOT, CauseSort.SCHEDULED))
PAGER = Channel(name="pager", causes=(CauseSort.SPOT,))


def policy(*channels: Channel, **changes: Any) -> ReactionPolicy:
    return ReactionPolicy(name="p", channels=channels or (CHAT,), **changes)


def taken(seconds: float) -> Facts:
    return facts(seconds, spot=True, spot_code="marked-for-termination")


def sent(world: InstanceWorld, seconds: float = 10) -> list[Notify]:
    return [step for step in work_for_instance(world, at(seconds)).steps if isinstance(step, Notify)]


def test_a_confirmed_cause_is_sent_to_each_channel_that_wants_it_beside_the_reaction() -> None:
    wanted = policy(CHAT, PAGER, spot=Reaction.DELETE_MACHINE)
    steps = work_for_instance(observed(record(spot(4)), policy=wanted, facts=taken(6)), at(10)).steps
    assert [step.activity for step in steps] == ["instances.delete_machine", "instances.notify", "instances.notify"]
    notice = steps[1]
    assert isinstance(notice, Notify)
    assert (notice.channel, notice.cause, notice.sort, notice.reaction) == (
        "chat",
        spot(4).key,
        CauseSort.SPOT,
        Reaction.DELETE_MACHINE,
    )
    assert (notice.namespace, notice.machine, notice.node, notice.deadline) == ("clusters", "m-0", "node-0", at(124))


def test_no_notification_is_sent_before_aws_confirms_the_event() -> None:
    known = record(spot(4))
    steps = work_for_instance(observed(known, policy=policy()), at(10)).steps
    assert [type(step) for step in steps] == [AskInstance]
    assert work_for_instance(observed(known, policy=ReactionPolicy(name="p")), at(10)).steps == ()
    assert sent(observed(known, policy=policy(), facts=facts(6, spot=True))) == []
    refuted = work_for_instance(observed(known, policy=policy(), facts=facts(6)), at(10)).steps
    assert [type(step) for step in refuted] == [CountRefuted]
    assert len(sent(observed(known, policy=policy(), facts=taken(6)))) == 1


def test_a_cause_is_sent_once_however_often_its_event_comes() -> None:
    world = observed(record(spot(4)), policy=policy(CHAT, PAGER), facts=taken(6))
    for notice in sent(world):
        world = notice.fold(world, None)
    again = world.with_record(record(spot(4), spot(4)).model_copy(update={"notified": world.record.notified}))
    assert (sent(world), sent(again)) == ([], [])


def test_a_notice_repeated_under_another_events_id_is_sent_once() -> None:
    first, second = sorted((spot(4), spot(4).model_copy(update={"event_id": "repeated"})), key=lambda event: event.key)
    world = observed(record(first), policy=policy(CHAT), facts=taken(6))
    (notice,) = sent(world)
    again = notice.fold(world, None)
    assert sent(again.with_record(fold(again.record, second))) == []
    refuted = again.record.model_copy(update={"refuted_causes": (first.key,)})
    assert [each.cause for each in sent(again.with_record(fold(refuted, second)))] == [second.key]


@pytest.mark.parametrize(("answer", "again"), [("running", True), ("stopped", False)])
def test_each_stop_is_sent_once_and_a_forged_start_sends_it_no_second_time(answer: str, *, again: bool) -> None:
    wanted = policy(Channel(name="chat", causes=(CauseSort.STOPPED,)), stopped=Reaction.CORDON)
    first = facts(12, "stopped")
    world = observed(answered(record(state("stopped", 10)), first), policy=wanted, facts=first)
    (notice,) = sent(world, 13)
    world = notice.fold(world, None).with_record(
        cordoned(notice.fold(world, None).record, "stopped", "node-0", at(14), Reaction.CORDON)
    )
    assert sent(world, 15) == []
    started = world.with_record(fold(world.record, state("running", 100)))
    steps = work_for_instance(started, at(101)).steps
    assert [type(each) for each in steps] == [AskInstance], "an event alone has no Node used again"
    told = facts(102, answer)
    then = started.with_record(answered(started.record, told)).learn(facts=told)
    released = [type(each) for each in work_for_instance(then, at(103)).steps]
    assert released == ([ReleaseNode] if again else [])
    second = facts(212, "stopped")
    stopped = answered(fold(then.record, state("stopped", 210)), second)
    assert len(sent(then.with_record(stopped).learn(facts=second), 213)) == again


def test_a_notification_that_fails_for_good_is_given_up() -> None:
    world = observed(record(spot(4)), policy=policy(), facts=taken(6))
    refused = Refusal(type=ErrorType.UNAVAILABLE, message="no worker", at=at(10))
    world = sent(world)[0].refuse(world, refused)
    assert (sent(world), world.refusals) == ([], {})


def test_a_hook_of_an_instance_that_is_deleted_on_purpose_is_not_sent() -> None:
    wanted = policy(Channel(name="chat", causes=(CauseSort.HOOK,)), terminating_hook=Reaction.DRAIN)
    answer = facts(6, group="c1-mp-0", lifecycle="Terminating:Wait")
    held = hooks_confirmed(record(hook(4)), answer)
    world = observed(held, policy=wanted, facts=answer, timings={"drain": HookTiming()})
    deleted = machine(deletionTimestamp=at(2).isoformat())
    assert len(sent(world)) == 1
    assert sent(world.model_copy(update={"machine": deleted})) == []


@pytest.mark.parametrize(("destination", "times"), [("EC2", 1), ("WarmPool", 0)])
def test_a_hook_of_an_instance_whose_node_never_joined_is_sent(destination: str, times: int) -> None:
    wanted = policy(Channel(name="chat", causes=(CauseSort.HOOK,)), terminating_hook=Reaction.DRAIN)
    answer = facts(6, group="c1-mp-0", lifecycle="Terminating:Wait")
    held = hooks_confirmed(record(hook(4, destination=destination)), answer)
    world = observed(held, owner=owner(node=""), policy=wanted, facts=answer, timings={"drain": HookTiming()})
    steps = work_for_instance(world, at(10)).steps
    assert [type(each) for each in steps] == [EndHook, *[Notify] * times]


@pytest.mark.parametrize(
    ("events", "answer", "causes"),
    [
        ((spot(4),), taken(6), {CauseSort.SPOT}),
        ((hook(4),), facts(6, group="c1-mp-0", lifecycle="Terminating:Wait"), {CauseSort.HOOK}),
        ((state("terminated", 4),), facts(6, "terminated"), {CauseSort.ENDED}),
        ((state("stopped", 4),), facts(6, "stopped"), {CauseSort.STOPPED}),
    ],
    ids=["spot", "hook", "ended", "stopped"],
)
def test_only_the_causes_that_a_channel_names_are_sent(
    events: tuple[Any, ...], answer: Facts, causes: set[CauseSort]
) -> None:
    reactions = {"terminating_hook": Reaction.DRAIN, "stopped": Reaction.CORDON}

    def seen(*wanted: CauseSort) -> set[CauseSort]:
        chosen = policy(Channel(name="c", causes=wanted), **reactions)
        return {notice.sort for notice in sent(observed(record(*events), policy=chosen, facts=answer))}

    assert seen(*CauseSort) == causes
    assert seen(*(set(CauseSort) - causes)) == set()


def test_a_scheduled_event_is_sent_when_it_is_acted_upon() -> None:
    known = record(scheduled(4, at(10 * 24 * 3600)))
    assert sent(observed(known, policy=policy())) == []
    steps = work_for_instance(observed(known, policy=policy()), at(9.5 * 24 * 3600)).steps
    assert any(isinstance(step, AskInstance) for step in steps)


def test_nothing_is_sent_about_a_paused_machine_and_in_observe_mode() -> None:
    known, chosen = record(spot(4)), policy()
    assert sent(observed(known, policy=chosen, facts=taken(6), machine=machine(annotations={PAUSED: "true"}))) == []
    assert sent(observed(known, policy=chosen, facts=taken(6), observing=True)) == []


def test_the_end_of_an_instance_that_cluster_api_deletes_is_sent_without_reaction() -> None:
    chosen = policy(Channel(name="c", causes=(CauseSort.ENDED,)), terminated=Reaction.DELETE_MACHINE)
    deleted = machine(deletionTimestamp="2026-05-04T10:00:00Z")
    known = record(state("shutting-down", 4))
    requested = work_for_instance(observed(known, policy=chosen, machine=deleted), at(10)).steps
    assert [type(step) for step in requested] == [AskInstance]
    world = observed(known, policy=chosen, machine=deleted, facts=facts(6, "shutting-down"))
    steps = work_for_instance(world, at(10)).steps
    assert [type(step) for step in steps] == [Notify]
    unheard = observed(known, policy=policy(terminated=Reaction.DELETE_MACHINE), machine=deleted)
    assert work_for_instance(unheard, at(10)).steps == (), "no channel wants it, so AWS is not asked"


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        ({"facts": taken(6)}, 6 + 61),
        ({"facts": taken(6), "machine": machine(annotations={PAUSED: "true"})}, 11),
        ({"facts": taken(6), "machine": None, "owner": None}, 11),
    ],
    ids=["what AWS said is out of date", "the machine is paused", "the machine is gone"],
)
def test_a_notification_that_is_being_sent_is_never_broken_off(changes: dict[str, Any], seconds: float) -> None:
    chosen = policy(spot=Reaction.DELETE_MACHINE)
    begun, step = State(observed(record(spot(4)), policy=chosen, facts=taken(6))).step(decide_instance, at(10))
    [notice] = [action.slot for action in step.start if isinstance(action, Notify)]
    later = begun.copy(world=observed(record(spot(4)), policy=chosen, **changes))
    later, step = later.step(decide_instance, at(seconds))
    assert notice not in step.cancel
    assert notice in later.running
    assert later.finished(notice, None).world.record.notified == (f"chat/{spot(4).key}",)


def test_a_policy_names_its_channels_and_the_usual_causes() -> None:
    written = {"notify": [{"name": "a", "url": "https://x"}, {"name": "b", "urlSecretKey": "k", "causes": ["ended"]}]}
    read = InterruptionPolicy.model_validate({"metadata": {"name": "p"}, "spec": written})
    usual = (CauseSort.SPOT, CauseSort.SCHEDULED, CauseSort.HOOK)
    assert read.spec.over(ReactionPolicy(), "p").channels == (
        Channel(name="a", causes=usual),
        Channel(name="b", causes=(CauseSort.ENDED,)),
    )


# --- bodies ---

VALUES = dict.fromkeys(FIELDS, "") | {
    "cause": "spot",
    "reaction": "drain",
    "instance": ID,
    "account": ACCOUNT,
    "region": REGION,
    "namespace": "clusters",
    "cluster": "c1",
    "node": 'node "0"\n',
    "deadline": "2026-05-04T10:02:00Z",
}


def test_a_sentence_says_which_instance_is_taken_why_until_when_and_what_is_done() -> None:
    assert sentence(VALUES | {"node": "node-0"}) == (
        f"{ID} ({ACCOUNT}, {REGION}, Node node-0) of cluster clusters/c1: Spot reclaims it, "
        "until 2026-05-04T10:02:00Z. Reaction: drain."
    )
    alone = VALUES | dict.fromkeys(("node", "cluster", "deadline"), "")
    assert sentence(alone) == f"{ID} ({ACCOUNT}, {REGION}): Spot reclaims it. Reaction: drain."
    assert all(sentence(VALUES | {"cause": sort.value}) for sort in CauseSort)


def test_each_format_is_json_of_its_receivers_shape() -> None:
    values = VALUES | {"text": 'a "quoted" line\n'}
    assert json.loads(json_body(values)) == values
    assert json.loads(slack_body(values)) == {"text": values["text"]}
    card = json.loads(teams_body(values))["attachments"][0]["content"]
    assert (card["type"], card["body"][0]["text"]) == ("AdaptiveCard", values["text"])


def test_values_are_escaped_in_a_template_and_a_double_dollar_is_one() -> None:
    body = templated_body('{"summary": "${instance} on ${node}", "price": "$$1"}', VALUES)
    assert json.loads(body) == {"summary": f"{ID} on {VALUES['node']}", "price": "$1"}


@pytest.mark.parametrize(
    ("template", "allowed"),
    [("", True), ("a\n${instance} $$", True), ("$instance", False), ("${password}", False), ("${instance", False)],
)
def test_a_template_names_known_fields_only(template: str, allowed: bool) -> None:
    assert bool(re.fullmatch(TEMPLATE, template)) == allowed
