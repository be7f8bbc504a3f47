"""What a claim changes in its handle's resource list."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from claim_scenes import asking, claim, config_map, entry, handle, provider, reference, scene

from domain.claims.handle_edits import ClaimEdits, claim_edits, entry_places
from domain.claims.template_variables import ProviderMissing


def at(provider_name: str, name: str) -> dict[str, Any]:
    return entry(provider_name, name, template=config_map(data="1"))


def push(user_claim: dict[str, Any], held: dict[str, Any], *names: str) -> ClaimEdits:
    return claim_edits(scene(*[provider(name) for name in ("a", "b")], claim=user_claim, handle=held), names)


def test_a_claim_in_provider_mode_hands_over_its_effective_values() -> None:
    held = handle(at("a", "a"), provider={"name": "a", "parameterValues": {"p": 1}})
    found = push(asking({"p": 2}, {"p": 2, "default": 3}, name="a"), held)
    assert found == ClaimEdits(
        provider={"name": "a", "parameterValues": {"p": 2, "default": 3}}, resources=(at("a", "a"),)
    )


def test_a_rejected_edit_hands_over_the_accepted_values() -> None:
    found = push(asking({"p": "bad"}, {"p": "good"}, name="a"), handle(at("a", "a")))
    assert found.provider == {"name": "a", "parameterValues": {"p": "good"}}


def test_a_claim_in_list_mode_takes_the_provider_from_its_handle() -> None:
    held = handle(at("a", "x"), provider={"name": "a"})
    assert push(claim(resources=[{"name": "x"}]), held, "a").provider is None


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        ({"a": 1}, {"a": 2}, {"a": 2}),
        ({"a": 1, "kept": [1, 2]}, {"b": 1}, {"a": 1, "kept": [1, 2], "b": 1}),
        ({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}),
        ({"a": [1, 2, 3]}, {"a": [9]}, {"a": [9, 2, 3]}),
        ({"a": 1}, {}, {"a": 1}),
        ({"a": 1}, {"a": True}, {"a": True}),
    ],
)
def test_a_claims_template_is_merged_over_the_handles_and_takes_nothing_away(
    before: Any, edit: Any, after: Any
) -> None:
    found = push(claim(resources=[{"template": edit}]), handle(entry("a", "x", template=before)), "a")
    assert found.resources == (entry("a", "x", template=after),)


def test_list_entries_meet_by_index_whatever_their_names() -> None:
    user_claim = claim(resources=[{"name": "renamed", "template": {"n": 1}}, {"template": {"n": 2}}])
    held = handle(entry("a", "x"), entry("a", "y"))
    found = push(user_claim, held, "a", "a")
    assert found.resources == (entry("a", "x", template={"n": 1}), entry("a", "y", template={"n": 2}))


@pytest.mark.parametrize(
    ("names", "numbers", "entries"),
    [
        ("cxy", (3, 1, 2), {"x": 1, "y": 2, "c": 3}),
        ("xcy", (1, 3, 2), {"x": 1, "y": 2, "c": 3}),
        ("yx", (2, 1), {"x": 1, "y": 2}),
        ("y", (2,), {"x": 0, "y": 2}),
        ("yc", (2, 3), {"x": 0, "y": 2, "c": 3}),
    ],
    ids=["one more in front", "one more between", "another order", "one less in front", "one less, one more"],
)
def test_a_listed_resource_keeps_its_entry_wherever_it_is_listed(
    names: str, numbers: tuple[int, ...], entries: dict[str, int]
) -> None:
    listed = [{"name": name, "template": {"n": number}} for name, number in zip(names, numbers, strict=True)]
    held = handle(entry("a", "x", template={"n": 0}), entry("a", "y", template={"n": 0}))
    found = push(claim(resources=listed), held, *("a" * len(names)))
    assert found == ClaimEdits(
        provider=None, resources=tuple(entry("a", name, template={"n": number}) for name, number in entries.items())
    )


@pytest.mark.parametrize(
    ("names", "held", "shown", "edited"),
    [
        (("c", "z"), ("x",), ("z",), (2, 1)),
        (("c", "x", "y"), ("x", ""), ("x", "y"), (2, 3, 1)),
        (("b", "a", "c"), ("", ""), ("a", "b"), (2, 1, 3)),
        (("b", "c"), ("", ""), ("a", "b"), (0, 1, 2)),
        (("x", "z"), ("x", "y"), ("z", "x"), (1, 2)),
        (("a", ""), ("", ""), (), (1, 2)),
        (("c", "x", ""), ("x", ""), ("x",), (2, 3, 1)),
        (("a", "b"), ("", ""), (), (1, 2)),
    ],
    ids=[
        "one more in front of a renamed one",
        "one more in front of one that got a name",
        "others in another order after they got names",
        "one less and one more after they got names",
        "the handle's own name counts more than that in the status",
        "the first of two gets a name",
        "one more in front of one without a name",
        "both get names",
    ],
)
def test_renamed_and_nameless_resources_keep_their_entries(
    names: tuple[str, ...], held: tuple[str, ...], shown: tuple[str, ...], edited: tuple[int, ...]
) -> None:
    listed = [{**entry("a", name), "template": {"n": number + 1}} for number, name in enumerate(names)]
    user_claim = claim({"resources": [entry("a", name) for name in shown]}, resources=listed)
    found = push(user_claim, handle(*(entry("a", name, template={"n": 0}) for name in held)), *("a" * len(names)))
    assert tuple(each["template"]["n"] for each in found.resources) == edited  # type: ignore[index, call-overload]


@pytest.mark.parametrize(
    ("listed", "held"),
    [
        ([entry("b"), entry("a", "x"), entry("b", "y"), entry("a")], [entry("a", "x"), entry("b", "y"), entry("a")]),
        ([entry("b", "x"), entry("b", "x")], [entry("b", "y"), entry("a", "y")]),
    ],
    ids=["a new one without a name in front", "two get the same name"],
)
def test_a_resource_that_was_added_is_not_added_again(listed: list[Any], held: list[Any]) -> None:
    names = [each["provider"]["name"] for each in listed]
    once = push(claim({"resources": held}, resources=listed), handle(*held), *names)
    places = entry_places(claim({"resources": held}, resources=listed), handle(*held), names)
    assert len(once.resources) == len(held) + 1
    shown: list[Any] = [*once.resources]
    for each, place in zip(listed, places, strict=True):
        shown[place] = each
    again = claim({"resources": shown}, resources=listed)
    assert push(again, handle(*once.resources), *names).resources == once.resources
    assert entry_places(again, handle(*once.resources), names) == places


def test_entries_that_the_handle_lacks_are_added_whole() -> None:
    user_claim = claim(resources=[{"name": "x"}, {"name": "y", "template": {"n": 2}}, {}])
    found = push(user_claim, handle(at("a", "x")), "a", "b", "a")
    assert found.resources[1:] == (
        {"name": "y", "provider": reference("b"), "template": {"n": 2}},
        {"provider": reference("a")},
    )


def test_another_provider_at_an_index_is_refused_template_and_all() -> None:
    user_claim = claim(resources=[{"template": {"n": 1}}, {"template": {"n": 2}}])
    held = handle(at("a", "x"), entry("a", "y", template={}))
    found = push(user_claim, held, "b", "a")
    assert found.resources == (at("a", "x"), entry("a", "y", template={"n": 2}))
    (text,) = found.refused
    assert text.startswith("resource 0 keeps ResourceProvider a and its template")


def test_a_resource_of_another_name_and_provider_is_a_new_one() -> None:
    found = push(claim(resources=[{"name": "y", "template": {"n": 1}}]), handle(at("a", "x")), "b")
    assert found.resources == (at("a", "x"), {"name": "y", "provider": reference("b"), "template": {"n": 1}})


@pytest.mark.parametrize("in_front", [[], ["c"]], ids=["alone", "after a new one"])
def test_another_provider_of_the_same_name_is_refused(in_front: list[str]) -> None:
    listed = [*({"name": name} for name in in_front), {"name": "x", "template": {"n": 1}}]
    found = push(claim(resources=listed), handle(at("a", "x")), *("a" for _ in in_front), "b")
    assert found.resources == (at("a", "x"), *(entry("a", name) for name in in_front))
    assert len(found.refused) == 1


@pytest.mark.parametrize("switched", [0, 1])
def test_like_resources_keep_their_entries_while_a_switch_of_one_is_refused(switched: int) -> None:
    entries = [entry("a", "x", template={"n": number}) for number in range(2)]
    listed = [{"name": "x", "template": {"n": number + 5}} for number in range(2)]
    found = push(claim(resources=listed), handle(*entries), *("ba" if switched == 0 else "ab"))
    expected = [number if number == switched else number + 5 for number in range(2)]
    assert [each["template"] for each in found.resources] == [{"n": number} for number in expected]
    (text,) = found.refused
    assert text.startswith(f"resource {switched} keeps ResourceProvider a and its template")


def test_resources_of_one_name_and_two_providers_are_kept_apart() -> None:
    found = push(claim(resources=[{"name": "x"}, {"name": "x"}]), handle(at("a", "x")), "b", "a")
    assert (found.resources, found.refused) == ((at("a", "x"), entry("b", "x")), ())


def test_the_provider_of_an_added_entry_has_to_exist() -> None:
    with pytest.raises(ProviderMissing, match="gone"):
        push(claim(resources=[{}]), handle(), "gone")


def test_pushing_changes_nothing_given_and_settles() -> None:
    user_claim = claim(resources=[{"template": {"l": [{"a": 1}]}}, {"template": {"n": 2}}])
    held = handle(entry("a", "x", template={"l": [{"b": 2}]}))
    before = copy.deepcopy((user_claim, held))
    once = push(user_claim, held, "a", "b")
    assert (user_claim, held) == before
    again = push(user_claim, handle(*once.resources), "a", "b")
    assert again.resources == once.resources
