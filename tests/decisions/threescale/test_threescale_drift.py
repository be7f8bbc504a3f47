"""Drift: what a tenant's lists show of objects that are in step, and what bears our mark without an owner."""

from __future__ import annotations

from typing import Any

import pytest
from threescale_objects import after, backend, metadata, product, remembers

from domain.resource import CustomResource
from domain.threescale.drift import Lists, differences, in_turn, lists_for, with_list, without_owner
from domain.threescale.resources import ActiveDoc, Application, CustomPolicyDefinition, DeveloperAccount
from starters.cli.audits.threescale import findings

OURS = {"managed_by": "operator"}
SCHEMA = {"name": "Mine", "version": "1", "summary": "s", "$schema": "http://x", "configuration": {"type": "object"}}

SPECS: dict[type[CustomResource], tuple[dict[str, Any], dict[str, Any]]] = {
    DeveloperAccount: ({"orgName": "ACME"}, {"accountID": 3}),
    Application: (
        {"name": "Store", "description": "It", "accountCR": {"name": "a"}, "productCR": {"name": "p"}},
        {"applicationID": 4},
    ),
    ActiveDoc: (
        {"name": "Doc", "systemName": "doc", "activeDocOpenAPIRef": {"url": "http://x"}},
        {"activeDocId": 5},
    ),
    CustomPolicyDefinition: ({"name": "mine", "version": "1", "schema": SCHEMA}, {"policyID": 6}),
}


def in_step(model: type[CustomResource]) -> CustomResource:
    spec, status = SPECS[model]
    bare = model.model_validate({"metadata": metadata(model.__name__.lower()), "spec": spec, "status": status})
    return remembers(bare, synced="digest")  # type: ignore[no-any-return]


OBJECTS: list[CustomResource] = [
    remembers(product(product_id=1, description="It"), synced="digest"),
    remembers(backend(), synced="digest"),
    *(in_step(model) for model in SPECS),
]
ANSWERS: dict[str, Any] = {
    "services": {"id": 1, "name": "shop", "system_name": "shop", "description": "It", "annotations": OURS},
    "backend_apis": {
        "id": 7,
        "name": "stock",
        "system_name": "stock",
        "private_endpoint": "https://stock.example.com:443",
        "annotations": OURS,
    },
    "accounts": {"id": 3, "org_name": "ACME", "annotations": OURS},
    "applications": {"id": 4, "name": "Store", "description": "It", "state": "live"},
    "active_docs": {"id": 5, "name": "Doc", "system_name": "doc", "body": "{}"},
    "registry/policies": {"id": 6, "name": "mine", "version": "1", "schema": SCHEMA},
}


def lists(**changes: Any) -> Lists:
    """What the tenant has, with other entries in some lists."""
    found: Lists = {}
    for read in lists_for(OBJECTS):
        entries = changes.get(read.path.replace("/", "_"), [ANSWERS[read.path]])
        found = with_list(found, read, {"listed": [{read.resource.value: each} for each in entries]})
    return found


def test_each_kind_is_listed_once_however_many_objects_there_are() -> None:
    assert [each.path for each in lists_for(OBJECTS * 3)] == list(ANSWERS)
    assert [each.path for each in lists_for(OBJECTS[:1])] == ["services"]


def test_an_item_that_agrees_with_its_object_has_not_drifted() -> None:
    assert differences(OBJECTS, lists()) == ()
    assert without_owner(OBJECTS, lists()) == ()


@pytest.mark.parametrize("path", list(ANSWERS))
def test_an_item_that_is_gone_from_3scale_has_drifted(path: str) -> None:
    (found,) = differences(OBJECTS, lists(**{path.replace("/", "_"): []}))

    assert "is not in 3scale any more" in found.problem


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("services", {"description": "Other"}),
        ("services", {"annotations": {}}),
        ("backend_apis", {"private_endpoint": "https://other.example.com:443"}),
        ("accounts", {"org_name": "Other"}),
        ("applications", {"state": "suspended"}),
        ("applications", {"name": "Other"}),
        ("active_docs", {"published": True}),
        ("registry/policies", {"schema": {**SCHEMA, "summary": "other"}}),
    ],
)
def test_an_object_that_a_person_has_changed_in_3scale_has_drifted(path: str, change: dict[str, Any]) -> None:
    of_doc = [after(each, {"spec": {"published": False}}) if isinstance(each, ActiveDoc) else each for each in OBJECTS]
    (found,) = differences(of_doc, lists(**{path.replace("/", "_"): [{**ANSWERS[path], **change}]}))

    assert "differs in 3scale" in found.problem


def test_an_object_being_synced_or_deleted_is_left_to_its_own_lifecycle() -> None:
    going = after(OBJECTS[0], {"metadata": {"deletionTimestamp": "2026-11-21T12:00:00Z"}})

    assert differences([going, product(product_id=1), product()], lists(services=[])) == ()


def test_a_marked_item_without_an_object_is_reported() -> None:
    entries = [
        {"id": 90, "system_name": "lost", "annotations": OURS},
        {"id": 91, "system_name": "anybodys", "annotations": {}},
        {"id": 92, "system_name": "shop", "annotations": OURS},  # the name of an object that is about to adopt it
    ]
    reported = without_owner(OBJECTS, lists(services=[ANSWERS["services"], *entries]))

    assert reported == ("3scale product 90 (lost)",)


def test_the_audit_says_what_a_person_can_do() -> None:
    lost = {"id": 90, "org_name": "Lost", "annotations": OURS}
    found = findings("https://t", OBJECTS, lists(services=[], accounts=[ANSWERS["accounts"], lost]))

    assert [(each.subject, each.problem) for each in found] == [
        ("Product shop/shop", "entry 1 is not in 3scale any more"),
        ("3scale account 90 (Lost) of https://t", "carries the operator's mark, and no object manages it"),
    ]


@pytest.mark.parametrize(("objects", "most"), [(1, 20), (20, 20), (21, 20), (7, 3), (9, 3), (200, 20)])
def test_sweeps_compare_every_product_in_turn_and_at_most_so_many_each(objects: int, most: int) -> None:
    whole = [remembers(product(f"p{n}", product_id=n + 1), synced="digest") for n in range(objects)]
    turns = [in_turn(whole, sweep, most) for sweep in range(-(-objects // most))]

    assert all(len(turn) == min(objects, most) for turn in turns)
    assert {each.metadata.name for turn in turns for each in turn} == {each.metadata.name for each in whole}


def test_an_object_without_parts_or_unsynced_has_no_turn() -> None:
    assert in_turn([in_step(model) for model in SPECS], 0, 20) == ()
    assert in_turn([product(product_id=1), remembers(product(), synced="digest")], 0, 20) == ()
    assert in_turn(OBJECTS, 0, 0) == ()
