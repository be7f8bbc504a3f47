"""Which keys a change wakes, and what is woken after a start: the watcher's rules, without any server."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any, cast

from domain.identity import Key, Kind
from engine.kube.api import KubeApi
from engine.kube.reflector import newer
from starters.watch.adoption import key_of
from starters.watch.index import Index
from starters.watch.kinds import Watched
from starters.watch.projection import Projection, View
from starters.watch.watcher import Watcher

KIND = Kind(name="Thing", group="example.com", version="v1", plural="things", area="")
RELATIVE = Key(kind="Other", namespace="n", name="relative", uid="r")


def relatives(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
    """One relative, which cares about the fact `seen`."""
    seen = [side.fact("seen") if side else None for side in (before, after)]
    return {RELATIVE} if seen[0] != seen[1] else set()


THINGS = Watched(kind=KIND, read=lambda _: View(()), dependents=relatives)


def thing(name: str = "a", version: str = "10", **fields: Any) -> Projection:
    values = {"fingerprint": 1, "handed": 1, "settled": True, "ours": False, "deleting": False, **fields}
    uid = values.pop("uid", f"uid-{name}")
    return Projection(key=Key(kind="Thing", namespace="n", name=name, uid=uid), resource_version=version, **values)


def watcher(**options: Any) -> Watcher:
    async def wake(_: Key) -> None:
        raise AssertionError("not reached: nothing drains the queue here")

    return Watcher(cast(KubeApi, None), wake, [THINGS], **options)


def waiting(subject: Watcher) -> set[str]:
    return {key.name for key in subject.queue._outstanding()}


def after_change(before: Projection | None, after: Projection | None, *, seen_live: bool = True) -> set[str]:
    subject = watcher()
    subject.changed(THINGS, before, after, seen_live=seen_live)
    return waiting(subject)


def test_a_change_of_interest_wakes_the_object() -> None:
    assert after_change(thing(), thing(fingerprint=2)) == {"a"}


def test_a_change_of_no_interest_wakes_nobody() -> None:
    assert after_change(thing(), thing(version="11")) == set()


def test_our_own_write_is_an_echo() -> None:
    assert after_change(thing(), thing(fingerprint=2, ours=True)) == set()


def test_our_own_write_still_wakes_the_relatives_that_care() -> None:
    assert after_change(thing(), thing(fingerprint=2, ours=True, facts={"seen": "x"})) == {"relative"}


def test_what_another_workflow_handed_over_is_no_echo() -> None:
    assert after_change(thing(), thing(fingerprint=2, handed=2, ours=True)) == {"a"}


def test_a_deletion_is_no_echo_though_it_names_no_writer() -> None:
    assert after_change(thing(), thing(fingerprint=2, ours=True, deleting=True)) == {"a"}


def test_what_somebody_takes_away_again_is_no_echo() -> None:
    assert after_change(thing(others=1), thing(fingerprint=2, ours=True, others=2)) == {"a"}


def test_a_difference_found_by_a_list_is_never_taken_for_an_echo() -> None:
    assert after_change(thing(), thing(fingerprint=2, ours=True), seen_live=False) == {"a"}


def test_an_object_that_we_created_is_woken() -> None:
    assert after_change(None, thing(ours=True)) == {"a", "relative"}


def test_a_deleted_object_is_woken() -> None:
    assert after_change(thing(ours=True), None) == {"a", "relative"}


def test_an_object_recreated_between_two_lists_is_two_objects() -> None:
    subject = watcher()
    subject.changed(THINGS, thing(uid="old"), thing(uid="new"), seen_live=False)
    assert {key.uid for key in subject.queue._outstanding()} == {"old", "new", "r"}


def after_start(*things: Projection, **options: Any) -> set[str]:
    subject = watcher(**options)
    subject.started(THINGS, list(things))
    return waiting(subject)


def test_after_a_start_only_the_unsettled_are_woken_at_once() -> None:
    assert after_start(thing("calm"), thing("busy", settled=False)) == {"busy", "relative"}


def test_after_a_start_everything_is_woken_on_request() -> None:
    assert after_start(thing("calm"), thing("busy", settled=False), wake_all=True) == {"calm", "busy", "relative"}


def test_what_changed_since_the_checkpoint_is_woken() -> None:
    known = json.dumps({"Thing": "10"})
    assert after_start(thing("old", "9"), thing("same", "10"), thing("new", "11"), checkpoint=known) == {
        "new",
        "relative",
    }


def test_without_a_checkpoint_what_others_wrote_last_is_left_for_later() -> None:
    subject = watcher()
    subject.started(THINGS, [thing("ours", ours=True), thing("theirs")])
    assert waiting(subject) == set()
    assert [key.name for key in subject._doubtful] == ["theirs"]


def test_an_unreadable_checkpoint_counts_as_none() -> None:
    for odd in ("", "x", "[]", "null"):
        assert after_start(thing("calm", ours=True), checkpoint=odd) == set()


def test_the_checkpoint_of_the_last_watcher_holds_until_there_is_a_new_one() -> None:
    known = json.dumps({"Thing": "10"})
    assert watcher(checkpoint=known).checkpoint() == known


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


async def test_what_workers_keep_for_a_while_wakes_its_dependents_once_more() -> None:
    kept, subject = replace(THINGS, kept=0.01), watcher()
    subject.changed(kept, thing(), thing(fingerprint=2, facts={"seen": "x"}), seen_live=True)
    assert waiting(subject) == {"a", "relative"}
    subject.queue._waiting.clear()  # both have been sent
    await asyncio.wait_for(arrival(subject), timeout=5)
    assert waiting(subject) == {"relative"}


async def arrival(subject: Watcher) -> None:
    subject.queue._arrived.clear()
    await subject.queue._arrived.wait()
