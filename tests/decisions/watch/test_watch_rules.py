"""Which keys a change wakes, and what is woken after a start: the watcher's rules, without any server."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from domain.identity import Key, Kind
from domain.relations import News, Relation
from domain.resource import timestamp
from engine.kube.api import KubeApi
from engine.kube.reflector import Followed, newer
from starters.watch.checkpoint import Checkpoint
from starters.watch.missing_workflows import key_of
from starters.watch.projection import Projection, Shown, Side, View
from starters.watch.projection_index import Index
from starters.watch.watched_kinds import Carried, Watched
from starters.watch.watcher import Watcher

KIND = Kind(name="Thing", group="example.com", version="v1", plural="things", area="")
RELATIVE = Key(kind="Other", namespace="n", name="relative", uid="r")


# One relative, which cares about the fact `seen`.
TELLS = Relation(of=KIND, to=(), news=News())
THINGS = Watched(Followed(KIND), read=lambda _: View(()), relations=(TELLS,))


def thing(name: str = "a", version: str = "10", **fields: Any) -> Projection:
    values = {"fingerprint": 1, "handed": 1, "settled": True, "ours": False, "deleting": False, **fields}
    uid = values.pop("uid", f"uid-{name}")
    seen = hash(values.get("facts", {}).get("seen"))
    values.setdefault("shown", {(TELLS, Side.REFERRER): Shown((RELATIVE,), (seen,))})
    return Projection(key=Key(kind="Thing", namespace="n", name=name, uid=uid), resource_version=version, **values)


def watcher(entry: Watched = THINGS, **options: Any) -> Watcher:
    async def wake(_: Key) -> None:
        """Accepted."""

    return Watcher(cast(KubeApi, None), wake, [entry], **options)


async def drain(subject: Watcher) -> None:
    """Send all wakes that wait."""
    for key in subject.queue.outstanding():
        await subject.queue.send(key)


def waiting(subject: Watcher) -> set[str]:
    return {key.name for key in subject.queue.outstanding()}


def after_change(before: Projection | None, after: Projection | None, *, seen_live: bool = True) -> set[str]:
    subject = watcher()
    subject.changed(THINGS, before, after, seen_live=seen_live)
    return waiting(subject)


def test_a_change_of_interest_wakes_the_object() -> None:
    assert after_change(thing(), thing(fingerprint=2)) == {"a"}


def test_an_irrelevant_change_wakes_no_lifecycle() -> None:
    assert after_change(thing(), thing(version="11")) == set()


def test_our_own_write_is_an_echo() -> None:
    assert after_change(thing(), thing(fingerprint=2, ours=True)) == set()


def test_our_own_write_still_wakes_the_relatives_that_care() -> None:
    assert after_change(thing(), thing(fingerprint=2, ours=True, facts={"seen": "x"})) == {"relative"}


def test_a_hand_over_by_another_workflow_is_no_echo() -> None:
    assert after_change(thing(), thing(fingerprint=2, handed=2, ours=True)) == {"a"}


def test_a_deletion_is_no_echo_though_it_names_no_writer() -> None:
    assert after_change(thing(), thing(fingerprint=2, ours=True, deleting=True)) == {"a"}


def test_a_removal_by_others_is_no_echo() -> None:
    assert after_change(thing(others=1), thing(fingerprint=2, ours=True, others=2)) == {"a"}


OWN = ("Update ", "2026-11-21T12:00:00Z", 20)


@pytest.mark.parametrize(
    ("own", "echo"),
    [
        ((OWN,), False),
        ((OWN, ("Update status", "2026-11-21T12:00:00Z", 30)), True),
        ((("Update ", "2026-11-21T12:00:01Z", 20),), True),
        ((("Update ", "2026-11-21T12:00:00Z", 21),), True),
        ((("Update ", "2026-11-21T12:00:00Z", 19),), False),
        ((), False),
    ],
    ids=["same", "subresource", "newer", "larger", "smaller", "gone"],
)
def test_within_a_second_of_another_clients_write_ours_shows_by_what_is_ours(own: Any, echo: bool) -> None:
    before, after = thing(own=(OWN,)), thing(fingerprint=2, own=own)
    assert after_change(before, after) == (set() if echo else {"a"})
    assert after_change(before, replace(after, others=2)) == {"a"}
    assert after_change(before, replace(after, deleting=True)) == {"a"}


@pytest.mark.parametrize("own", [(("Update ", "2026-11-21T12:00:00Z", 19),), ()], ids=["smaller", "gone"])
def test_a_removal_of_our_fields_by_others_is_no_echo(own: Any) -> None:
    assert after_change(thing(own=(OWN,)), thing(fingerprint=2, own=own, ours=True)) == {"a"}


def test_a_difference_found_by_a_list_is_never_taken_for_an_echo() -> None:
    assert after_change(thing(), thing(fingerprint=2, ours=True), seen_live=False) == {"a"}


def test_an_object_that_we_created_is_woken() -> None:
    assert after_change(None, thing(ours=True)) == {"a", "relative"}


def test_a_deleted_object_is_woken() -> None:
    assert after_change(thing(ours=True), None) == {"a", "relative"}


def test_an_object_recreated_between_two_lists_is_two_objects() -> None:
    subject = watcher()
    subject.changed(THINGS, thing(uid="old"), thing(uid="new"), seen_live=False)
    assert {key.uid for key in subject.queue.outstanding()} == {"old", "new", "r"}


def after_start(*things: Projection, **options: Any) -> set[str]:
    subject = watcher(**options)
    subject.started(THINGS, list(things))
    return waiting(subject)


def test_after_a_start_only_the_unsettled_are_woken_at_once() -> None:
    assert after_start(thing("calm"), thing("busy", settled=False)) == {"busy", "relative"}


def test_an_object_changed_since_the_checkpoint_is_woken() -> None:
    known = json.dumps({"Thing": "10"})
    assert after_start(thing("old", "9"), thing("same", "10"), thing("new", "11"), checkpoint=known) == {
        "new",
        "relative",
    }


def test_without_a_checkpoint_what_others_wrote_last_is_left_for_later() -> None:
    subject = watcher()
    subject.started(THINGS, [thing("ours", ours=True), thing("theirs")])
    assert waiting(subject) == set()
    assert [key.name for key in subject.doubtful] == ["theirs"]


def test_an_unreadable_checkpoint_counts_as_none() -> None:
    for odd in ("", "x", "[]", "null"):
        assert after_start(thing("calm", ours=True), checkpoint=odd) == set()


def test_the_checkpoint_of_the_last_watcher_holds_until_there_is_a_new_one() -> None:
    known = json.dumps({"Thing": "10"})
    assert watcher(checkpoint=known).checkpoint() == known


def test_a_checkpoint_forgets_what_is_no_longer_watched() -> None:
    checkpoint = Checkpoint(json.dumps({"Thing": "10", "Secrets in gone": "11", "Secrets in slow": "12"}))
    checkpoint.renew({"Thing": "20"}, {"Thing", "Secrets in slow"})
    assert json.loads(str(checkpoint)) == {"Thing": "20", "Secrets in slow": "12"}
    checkpoint.renew({"Thing": "21"}, {"Thing"})
    assert json.loads(str(checkpoint)) == {"Thing": "21"}


def test_versions_are_compared_as_numbers() -> None:
    assert newer("10", "9")
    assert not newer("9", "10")
    assert not newer("10", "10")
    assert newer("10", "")


def test_versions_that_are_no_numbers_count_as_newer_unless_equal() -> None:
    assert newer("b", "a")
    assert newer("a", "b")
    assert not newer("a", "a")


def test_a_workflow_id_leads_back_to_its_key() -> None:
    for key in (
        Key(kind="Account", namespace="n", name="a", uid="u"),
        Key(kind="Node", namespace="", name="a", uid="u"),
        Key(kind="Account", namespace="n", name="a", uid="u", cluster="blue"),
    ):
        assert key_of(key.workflow_id, key.cluster) == key


def test_workflow_ids_of_others_lead_nowhere() -> None:
    assert key_of("Account/n/a/u", "blue") is None
    assert key_of("blue/Account/n/a/u", "") is None
    assert key_of("temporal-sys-scheduler", "") is None


async def arrival(subject: Watcher) -> None:
    subject.queue.arrived.clear()
    await subject.queue.arrived.wait()


# Objects that others carry, lists that wait for each other.

CARRIER = Key(kind="Carrier", namespace="n", name="delegate", uid="c")


def carrier_by_fact(known: Projection, index: Index) -> Key:
    """Carried while its fact `carried` holds; by another thing if it names an existing one."""
    other = index.get("Thing", "n", known.fact("by"))
    return (other.key if other else CARRIER) if known.fact("carried") else known.key


CARRIED = replace(THINGS, carried=Carried(carrier_by_fact, from_birth=True, relieved=0.01))


def carrying(**options: Any) -> Watcher:
    return watcher(CARRIED, **options)


def carried(name: str = "a", **fields: Any) -> Projection:
    return thing(name, **{"facts": {"carried": "yes"}, **fields})


def after_carried_change(before: Projection | None, after: Projection | None) -> set[str]:
    subject = carrying()
    subject.changed(CARRIED, before, after, seen_live=True)
    return waiting(subject)


def test_the_delegate_is_woken_instead_of_what_it_carries() -> None:
    assert after_carried_change(carried(), carried(fingerprint=2)) == {"delegate"}
    assert after_carried_change(carried(), None) == {"delegate", "relative"}


def test_a_write_by_the_delegate_is_no_news_to_it_but_to_relatives() -> None:
    seen = {"carried": "yes", "seen": "x"}
    assert after_carried_change(None, carried(ours=True, facts=seen)) == {"relative"}
    assert after_carried_change(None, carried(ours=False, facts=seen)) == {"delegate", "relative"}


def test_after_a_start_the_delegate_of_the_unsettled_is_woken() -> None:
    subject = carrying()
    subject.started(CARRIED, [carried(settled=False), carried("b")])
    assert "delegate" in waiting(subject)
    assert not {"a", "b"} & waiting(subject)


def test_a_delegate_may_be_carried() -> None:
    subject = carrying()
    middle = carried("middle")
    subject.index.of("Thing")[middle.name] = middle
    by_middle = {"carried": "yes", "by": "middle"}
    subject.changed(CARRIED, carried(facts=by_middle), carried(facts=by_middle, fingerprint=2), seen_live=True)
    assert waiting(subject) == {"delegate"}


def test_a_ring_of_delegates_ends() -> None:
    subject = carrying()
    for name, by in (("a", "b"), ("b", "a")):
        known = carried(name, facts={"carried": "yes", "by": by})
        subject.index.of("Thing")[known.name] = known
    assert subject.delegation.of(subject.index.of("Thing")["n", "a"]).name in {"a", "b"}


def test_a_relative_that_is_carried_wakes_its_delegate() -> None:
    subject = carrying()
    relative = carried("relative", uid="r")
    subject.index.of("Thing")[relative.name] = relative
    keys = subject.delegation.of_all([relative.key, RELATIVE])
    assert list(keys) == [CARRIER, RELATIVE]


async def test_an_objects_own_workflow_learns_that_another_does_its_work() -> None:
    subject = carrying()
    subject.changed(CARRIED, thing(ours=True), carried(ours=True), seen_live=True)
    assert waiting(subject) == set()
    await asyncio.wait_for(arrival(subject), timeout=5)
    assert waiting(subject) == {"a"}


@pytest.mark.parametrize("opened", [True, False])
@pytest.mark.parametrize("before", [None, carried(ours=True)], ids=["new", "carried"])
async def test_an_object_without_delegation_is_opened_if_it_was_not(before: Projection | None, opened: bool) -> None:
    requested = []

    async def is_open(key: Key) -> bool:
        requested.append(key.name)
        return opened

    subject = carrying(is_open=is_open)
    subject.changed(CARRIED, before, thing(ours=True, facts={"seen": "x"} if before is None else {}), seen_live=True)
    await drain(subject)
    async with asyncio.timeout(5):
        await asyncio.gather(*subject.handover.opening)
    assert requested == ["a"]
    assert waiting(subject) == (set() if opened else {"a"})


@pytest.mark.parametrize("opened", [True, False])
async def test_the_workflow_of_what_has_gone_while_another_carried_it_is_ended(opened: bool) -> None:
    async def is_open(key: Key) -> bool:
        return opened

    subject = carrying(is_open=is_open)
    subject.changed(CARRIED, carried(), None, seen_live=True)
    await drain(subject)
    async with asyncio.timeout(5):
        await asyncio.gather(*subject.handover.opening)
    assert waiting(subject) == ({"a"} if opened else set())


async def test_only_what_carries_itself_is_missed_among_workflows(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unmatched(kind: str, keys: list[Key]) -> list[Key]:
        assert {key.name for key in keys} == {"free", "carried"}
        return [*keys, Key(kind="Thing", namespace="n", name="gone", uid="g")]

    subject = carrying(unmatched=unmatched, adoption_rate=1000)
    for known in (thing("free"), carried("carried")):
        subject.index.of("Thing")[known.name] = known
    monkeypatch.setattr(subject.mirrors, "is_listed", lambda _: True)
    await subject.adopt()
    assert waiting(subject) == {"free", "gone"}


async def test_an_object_that_ends_before_its_turn_is_adopted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = {
        "never": None,
        "in a day": timedelta(days=1),
        "long ago": -timedelta(days=1),
        "soon": timedelta(seconds=30),
        "of what it carries": timedelta(days=1),
    }

    async def unmatched(kind: str, keys: list[Key]) -> list[Key]:
        return keys

    subject = carrying(unmatched=unmatched, adoption_rate=0.1)
    for name, end in ends.items():
        facts = {"end": timestamp(datetime.now(UTC) + end)} if end else {}
        subject.index.of("Thing")["n", name] = thing(name, facts=facts)
    held = carried("held", facts={"carried": "yes", "by": "of what it carries", "end": timestamp(datetime.now(UTC))})
    subject.index.of("Thing")[held.name] = held
    monkeypatch.setattr(subject.mirrors, "is_listed", lambda _: True)
    adopting = asyncio.create_task(subject.adopt())
    for _ in range(10):  # to the rest after the first that is woken slowly
        await asyncio.sleep(0)
    adopting.cancel()
    assert waiting(subject) == {"never", "long ago", "soon", "of what it carries"}, "the first, and those that end"


def test_an_object_that_names_a_missing_one_is_woken_after_the_first_list() -> None:
    needs = Relation(of=KIND, to=KIND, required=True)
    entry = replace(THINGS, relations=(needs,))
    for there in ([], [thing()]):
        subject = watcher()
        needing = thing("b", shown={(needs, Side.REFERRER): Shown((("n", "a"),), ())})
        for each in (needing, *there):
            subject.index.of("Thing")[each.name] = each
        subject.started(entry, there)
        assert waiting(subject) == (set() if there else {"b"})


# Which lifecycles are started, and which only notified.


class Listed:
    """Mirrors that have listed everything."""

    def is_listed(self, _: Watched) -> bool:
        return True


async def sent(key: Key, *known: Projection, listed: bool = True) -> str:
    """How the wake of a key is sent."""
    ways: list[str] = []

    async def start(_: Key) -> None:
        ways.append("started")

    async def tell(_: Key) -> None:
        ways.append("notified if open")

    subject = Watcher(cast(KubeApi, None), start, [THINGS], wake_open=tell)
    if listed:
        subject.mirrors = cast(Any, Listed())
    for each in known:
        subject.index.of(THINGS.name)[each.name] = each
    await subject.send(key)
    return ways[0]


async def test_the_lifecycle_of_an_object_that_exists_is_started() -> None:
    assert await sent(thing().key, thing()) == "started"


async def test_none_is_started_for_an_object_that_is_gone_or_was_replaced() -> None:
    assert await sent(thing().key) == "notified if open"
    assert await sent(thing().key, thing(uid="another")) == "notified if open"


async def test_an_object_not_known_to_be_gone_is_started() -> None:
    assert await sent(thing().key, listed=False) == "started"
    assert await sent(RELATIVE) == "started", "nothing of this kind is watched: it has no object"
