"""One look at a claim: each row of the claim's state machine as it comes out in the whole plan."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from claim_domain import NAMES
from claim_scenes import (
    BOUND,
    NOW,
    OPERATOR_NAMESPACE,
    asking,
    claim,
    config_map,
    entry,
    handle,
    link,
    provider,
    reference,
)

from domain.claims.claim_evaluation import plan_claim
from domain.claims.evaluator_interface import ClaimPlan, ClaimQuestion, Halt
from domain.claims.faults import Faulty, fault_of
from domain.claims.json_objects import objects_at, text_at
from domain.claims.provider_assignment import assign

NOW_TEXT = "2026-11-21T12:00:00Z"
LATER = NOW + timedelta(minutes=5)
INITIALISED = {NAMES.init_timestamp_annotation: "2026-11-20T00:00:00Z"}

AT_MOST_3 = {"name": "at most 3", "check": "value <= 3"}
SIZES = provider(
    "sizes",
    parameters=[{"name": "size", "allowUpdate": True, "default": {"value": 1}, "validation": {"checks": [AT_MOST_3]}}],
    override={"apiVersion": "v1", "kind": "ConfigMap"},
    template={"definition": {"data": {"size": "{{ size | int }}"}}},
)
MAPS = provider(
    "maps",
    match={"kind": "ConfigMap"},
    override={"apiVersion": "v1"},
    default={"data": {"color": "red"}},
    validation={"checks": [{"name": "no pink", "check": "data.color != 'pink'"}]},
    vars={"a": 1},
)


def ask(
    user_claim: dict[str, Any],
    *providers: dict[str, Any],
    held: dict[str, Any] | None = None,
    now: datetime = NOW,
    **more: Any,
) -> ClaimPlan:
    """The plan for a claim, its providers assigned as they are before each look."""
    known = {each["metadata"]["name"]: each for each in providers}
    question = ClaimQuestion(names=NAMES, now=now, providers=known, claim=user_claim, handle=held, **more)
    if "assigned" not in more and isinstance(user_claim["spec"].get("resources"), list):
        try:
            question = question.model_copy(update={"assigned": assign(user_claim, known)})
        except Faulty as error:
            question = question.model_copy(update={"unassigned": fault_of(error)})
    before = copy.deepcopy(question)
    plan = plan_claim(question)
    assert question == before, "the question was changed"
    return plan


def applied(user_claim: dict[str, Any], plan: ClaimPlan) -> dict[str, Any]:
    """The claim as it is once the plan is written."""
    metadata = user_claim["metadata"]
    after = {
        **user_claim,
        "metadata": {
            **metadata,
            "annotations": {**metadata.get("annotations", {}), **plan.annotations},
            "labels": {**metadata.get("labels", {}), **plan.labels},
        },
        "status": plan.status,
    }
    if plan.resources is not None:
        after["spec"] = {**user_claim["spec"], "resources": list(plan.resources)}
    return after


def annotated(user_claim: dict[str, Any], **annotations: str) -> dict[str, Any]:
    return {**user_claim, "metadata": {**user_claim["metadata"], "annotations": annotations}}


def initialised(user_claim: dict[str, Any]) -> dict[str, Any]:
    return {**user_claim, "metadata": {**user_claim["metadata"], "annotations": INITIALISED}}


def listing(*entries: Any, status: Any = None, **spec: Any) -> dict[str, Any]:
    return claim(status, resources=list(entries), **spec)


def stalled(plan: ClaimPlan) -> str:
    """The message of the condition."""
    (condition,) = objects_at(plan.status, "conditions")
    assert (condition["type"], condition["status"]) == ("Stalled", "True")
    return text_at(condition, "message")


# The shape of the spec


@pytest.mark.parametrize(
    ("user_claim", "reason", "words"),
    [
        (claim(provider={"name": "sizes"}, resources=[entry("maps")]), "InvalidSpec", "exclude each other"),
        (claim(provider={"name": "sizes"}, resources=[]), "InvalidSpec", "exclude each other"),
        (claim(), "InvalidSpec", "neither provider nor resources"),
        (claim(provider={}), "InvalidSpec", "has no name"),
        (listing(), "InvalidResources", "spec.resources is empty"),
        (listing(entry("maps"), {"name": "b"}), "InvalidResources", "(b) has neither provider.name nor template"),
        (listing({"template": {"kind": "Secret"}}), "NoProvider", "no ResourceProvider matches"),
        (listing(entry("gone")), "ProviderMissing", "ResourceProvider gone not found"),
        (claim(provider={"name": "gone"}), "ProviderMissing", "ResourceProvider gone: not found"),
        (
            claim({"provider": {"name": "sizes"}}, provider={"name": "maps"}),
            "ProviderImmutable",
            "it is sizes, and may not change to maps",
        ),
    ],
)
def test_a_spec_that_cannot_be_followed_is_reported_and_halts(user_claim: Any, reason: str, words: str) -> None:
    plan = ask(user_claim, SIZES, MAPS)
    assert plan.fault is not None
    assert (plan.halt, plan.fault.reason) == (Halt.FAULT, reason)
    assert words in stalled(plan)
    assert (plan.annotations, plan.resources, plan.wanted, plan.creation) == ({}, None, (), None)


def test_a_fault_takes_nothing_else_out_of_the_status() -> None:
    status = {"kopf": {"progress": {}}, "diffBase": "{}", "healthy": True, "provider": {"name": "sizes"}}
    plan = ask(claim(status, provider={"name": "maps"}), SIZES, MAPS)
    assert {key: value for key, value in plan.status.items() if key != "conditions"} == status


def test_the_condition_goes_with_the_fault() -> None:
    faulty = asking({})
    after = applied(faulty, ask(faulty))
    assert "conditions" in after["status"]
    healed = ask({**after, "spec": {"provider": {"name": "sizes"}}}, SIZES)
    assert (healed.halt, healed.fault, "conditions" in healed.status) == (Halt.NONE, None, False)


# The top-level provider's annotations and labels


FORCING = provider("base", resourceClaimAnnotations={"a/b": "1", "mood": "bad"}, resourceClaimLabels={"c": "2"})


def test_the_providers_annotations_and_labels_are_put_on_the_claim() -> None:
    plan = ask(asking({}), FORCING)
    assert plan.annotations == {"a/b": "1", "mood": "bad", NAMES.init_timestamp_annotation: NOW_TEXT}
    assert plan.labels == {"c": "2"}


def test_only_missing_or_different_values_are_set_and_none_is_removed() -> None:
    after = applied(asking({}), ask(asking({}), FORCING))
    assert (ask(after, FORCING).annotations, ask(after, FORCING).labels) == ({}, {})
    fewer = provider("base", resourceClaimAnnotations={"a/b": "2"})
    assert ask(after, fewer).annotations == {"a/b": "2"}


def test_templates_see_the_annotations_that_are_being_put() -> None:
    base = provider(
        "base",
        resourceClaimAnnotations={"size": "7"},
        parameters=[{"name": "size", "default": {"template": "{{ resource_claim.annotations.size | int }}"}}],
    )
    assert ask(asking({}), base).status["provider"] == {"name": "base", "parameterValues": {"size": 7}}


def test_a_pool_that_the_provider_forces_is_wanted() -> None:
    assert ask(asking({}), provider("base", resourceClaimAnnotations={NAMES.pool_name_key: "x"})).wanted_pool == "x"
    assert ask(annotated(asking({}), **{NAMES.pool_name_key: "y"}), provider("base")).wanted_pool == "y"
    assert ask(asking({}), provider("base")).wanted_pool == ""


# Approval


@pytest.mark.parametrize(
    ("approval", "message"),
    [
        ({"required": True}, "Approval pending."),
        ({"required": True, "pendingMessage": "Ask Ada."}, "Ask Ada."),
        ({"required": True, "pendingMessage": ""}, ""),
    ],
)
def test_nothing_happens_before_the_approval(approval: Any, message: str) -> None:
    base = provider("base", approval=approval, parameters=[{"name": "n", "required": True}], **CREATES)
    plan = ask(asking({}), base)
    assert plan.halt is Halt.APPROVAL
    assert plan.status == {"provider": {"name": "base"}, "approval": {"state": "pending", "message": message}}
    assert (plan.annotations, plan.wanted, plan.creation) == ({}, (), None)


CREATES: dict[str, Any] = {"override": {"apiVersion": "v1", "kind": "ConfigMap"}}
APPROVING = provider("base", approval={"required": True}, **CREATES)
OLD = {"lifespan": {"end": NOW_TEXT}, "resources": [{}], "summary": {"a": 1}}


@pytest.mark.parametrize("state", ["pending", "rejected"])
def test_while_it_is_pending_or_rejected_the_status_shows_nothing_of_a_handle(state: str) -> None:
    approval = {"state": state, "message": "requested by Ada"}
    plan = ask(claim({**OLD, "approval": approval}, provider={"name": "base"}), APPROVING)
    assert plan.halt is Halt.APPROVAL
    assert plan.status == {"approval": approval, "provider": {"name": "base"}}


@pytest.mark.parametrize(
    ("status", "held"),
    [
        ({"approval": {"state": "approved"}}, None),
        ({"resourceHandle": {"name": "guid-b7k2q"}}, None),
        ({"approval": {"state": "pending"}, "resourceHandle": {"name": "guid-b7k2q"}}, None),
        (None, handle(**BOUND)),
    ],
    ids=["approved", "has a handle", "has a handle, whatever is said", "a handle holds it"],
)
def test_an_approved_or_bound_claim_goes_on(status: Any, held: Any) -> None:
    user_claim = claim(status, provider={"name": "base"})
    assert ask(user_claim, APPROVING, held=held).halt is Halt.NONE


def test_no_approval_is_asked_for_without_need() -> None:
    assert "approval" not in ask(asking({}), provider("base", approval={"required": False})).status


# Assigned providers


def test_entries_show_their_providers_and_keep_what_they_showed() -> None:
    status = {"resources": [{"state": {"kind": "ConfigMap"}, "name": "old"}]}
    user_claim = listing({"name": "a", "template": config_map()}, entry("maps"), status=status)
    assert ask(user_claim, MAPS).status["resources"] == [
        {"name": "a", "provider": reference("maps"), "state": {"kind": "ConfigMap"}},
        {"provider": reference("maps")},
    ]


def test_entries_that_are_gone_are_shown_only_while_a_handle_may_hold_them() -> None:
    status = {"resources": [{"provider": reference("maps")}, {"provider": reference("sizes"), "name": "b"}]}
    user_claim = initialised(listing(entry("maps"), status=status))
    assert ask(user_claim, MAPS, SIZES).status["resources"] == status["resources"][:1]
    held = handle(entry("maps"), entry("sizes", "b"), **BOUND)
    assert ask(user_claim, MAPS, SIZES, held=held).status["resources"] == status["resources"]


def test_the_provider_of_a_held_entry_stays_shown_when_the_claim_names_another() -> None:
    user_claim = initialised(listing(entry("sizes"), status={"resources": [{"provider": reference("maps")}]}))
    assert ask(user_claim, MAPS, SIZES).status["resources"] == [{"provider": reference("sizes")}]
    held = handle(entry("maps"), **BOUND)
    assert ask(user_claim, MAPS, SIZES, held=held).status["resources"] == [{"provider": reference("maps")}]


# Initialisation


def test_a_claim_is_marked_and_its_entries_get_references_and_defaults() -> None:
    plan = ask(listing({"provider": {"name": "maps"}, "template": {"data": {"x": "1"}}}), MAPS)
    assert plan.annotations == {NAMES.init_timestamp_annotation: NOW_TEXT}
    filled = {"provider": reference("maps"), "template": {"data": {"x": "1", "color": "red"}}}
    assert plan.resources == (filled,)
    assert [wanted.template for wanted in plan.wanted] == [filled["template"]]


def test_defaults_are_never_applied_again() -> None:
    user_claim = initialised(listing({"provider": {"name": "maps"}, "template": {"data": {"x": "1"}}}))
    plan = ask(user_claim, MAPS)
    assert (plan.annotations, plan.resources) == ({}, None)
    assert plan.wanted[0].template == {"data": {"x": "1"}}


def test_in_provider_mode_only_the_mark_is_set() -> None:
    plan = ask(asking({}, name="sizes"), SIZES, now=NOW.replace(microsecond=900_000))
    assert (plan.annotations, plan.resources) == ({NAMES.init_timestamp_annotation: NOW_TEXT}, None)


def test_an_invalid_claim_is_initialised_all_the_same() -> None:
    plan = ask(asking({"size": 9}, name="sizes"), SIZES)
    assert (plan.halt, list(plan.annotations)) == (Halt.INVALID, [NAMES.init_timestamp_annotation])


def test_a_default_that_cannot_be_rendered_leaves_the_claim_uninitialised() -> None:
    faulty = provider("maps", template={"enable": True}, default={"a": "{{ missing }}"})
    plan = ask(listing(entry("maps")), faulty)
    assert plan.fault is not None
    assert (plan.halt, plan.fault.reason, plan.annotations) == (Halt.FAULT, "TemplateFailed", {})
    assert "ResourceProvider maps, default: 'missing' is undefined" in stalled(plan)


# Validation


def test_a_listed_template_that_is_refused_halts_until_it_is_corrected() -> None:
    user_claim = listing(entry("maps", template={"data": {"color": "pink"}}), entry("maps"))
    refused = ask(user_claim, MAPS)
    shown = {"provider": reference("maps"), "validationError": "Validation check failed: no pink"}
    assert (refused.halt, refused.fault, refused.wanted) == (Halt.INVALID, None, ())
    assert refused.status == {"resources": [shown, {"provider": reference("maps")}]}
    after = applied(user_claim, refused)
    after["spec"]["resources"][0]["template"]["data"]["color"] = "blue"
    corrected = ask(after, MAPS)
    assert (corrected.halt, corrected.status) == (Halt.NONE, {"resources": [{"provider": reference("maps")}] * 2})


def test_a_resource_listed_in_front_is_shown_after_those_that_the_handle_holds() -> None:
    held = handle(entry("maps", "a"), entry("maps", "b"), **BOUND)
    known = [{"name": name, "provider": reference("maps"), "state": {"of": name}} for name in ("a", "b")]
    pink = {"kind": "ConfigMap", "data": {"color": "pink"}}
    user_claim = initialised(listing({"name": "c", "template": pink}, entry("maps", "b"), entry("maps", "a")))
    user_claim["status"] = {"resources": known}
    refused = ask(user_claim, MAPS, provider("others", match={"kind": "Secret"}), held=held)
    new = {"name": "c", "provider": reference("maps"), "validationError": "Validation check failed: no pink"}
    assert refused.status == {"resources": [*known, new]}


def test_the_status_of_a_removed_resource_stays_as_long_as_the_handle_holds_it() -> None:
    held = handle(entry("maps", "a"), entry("maps", "b"), **BOUND)
    known = [{"name": name, "provider": reference("maps"), "state": {"of": name}} for name in ("a", "b")]
    user_claim = initialised(listing(entry("maps", "b")))
    assert ask({**user_claim, "status": {"resources": known}}, MAPS, held=held).status == {"resources": known}


def test_variables_of_the_handle_count_in_checks_of_its_claim() -> None:
    limited = provider("maps", vars={"most": 1}, validation={"checks": [{"name": "most", "check": "n <= most"}]})
    user_claim = listing(entry("maps", template={"n": 2}))
    assert ask(user_claim, limited, held=handle(entry("maps"), **BOUND)).halt is Halt.INVALID
    assert ask(user_claim, limited, held=handle(entry("maps"), vars={"most": 2}, **BOUND)).halt is Halt.NONE


def test_values_are_completed_and_accepted() -> None:
    plan = ask(asking({}, name="sizes"), SIZES)
    assert plan.status == {
        "provider": {"name": "sizes", "parameterValues": {"size": 1}},
        "resources": [{"name": "sizes", "provider": reference("sizes")}],
    }


def test_refused_values_leave_the_accepted_ones() -> None:
    plan = ask(asking({"size": 4}, accepted={"size": 2}, name="sizes"), SIZES)
    errors = ["Parameter size failed check: at most 3"]
    accepted = {"name": "sizes", "parameterValues": {"size": 2}, "validationErrors": errors}
    assert (plan.halt, plan.fault, plan.wanted, plan.creation) == (Halt.INVALID, None, (), None)
    assert plan.status == {"provider": accepted}


def test_the_errors_go_when_the_values_are_corrected() -> None:
    user_claim = asking({"size": 4}, name="sizes")
    after = applied(user_claim, ask(user_claim, SIZES))
    after["spec"] = {"provider": {"name": "sizes", "parameterValues": {"size": 3}}}
    assert ask(after, SIZES).status["provider"] == {"name": "sizes", "parameterValues": {"size": 3}}


def test_values_that_the_status_lost_are_found_in_the_handle() -> None:
    generated = provider(
        "base", parameters=[{"name": "password", "default": {"template": "{{ '[a-z]{9}' | strgen }}"}}]
    )
    held = handle(provider={"name": "base", "parameterValues": {"password": "xyzzy"}}, **BOUND)
    assert ask(asking({}), generated, held=held).status["provider"] == {
        "name": "base",
        "parameterValues": {"password": "xyzzy"},
    }


@pytest.mark.parametrize(
    ("accepted", "held_provider"),
    [({"size": 2}, "sizes"), (None, "another")],
    ids=["nothing was lost", "the handle was made by another provider"],
)
def test_a_handles_values_count_only_in_place_of_lost_ones(accepted: Any, held_provider: str) -> None:
    held = handle(provider={"name": held_provider, "parameterValues": {"size": 3}}, **BOUND)
    values = {"size": 2} if accepted else {"size": 1}
    plan = ask(asking({}, accepted=accepted, name="sizes"), SIZES, held=held)
    assert plan.status["provider"] == {"name": "sizes", "parameterValues": values}


# What a claim needs of a handle


def test_a_provider_mode_claim_wants_the_resources_for_its_accepted_values() -> None:
    tolerant = {**SIZES, "spec": {**SIZES["spec"], "matchIgnore": ["/data/.*"]}}
    top = provider(
        "top",
        parameters=[{"name": "n", "default": {"value": 2}}],
        linkedResourceProviders=[{"name": "sizes", "resourceName": "x", "parameterValues": {"size": "{{ n | int }}"}}],
    )
    plan = ask(asking({}, name="top"), top, tolerant)
    (wanted,) = plan.wanted
    assert (plan.provider, wanted.provider, wanted.name) == ("top", "sizes", "x")
    assert (wanted.template, wanted.match_ignore) == ({"data": {"size": 2}}, ("/data/.*",))
    assert wanted.reference == reference("sizes")
    assert plan.status["resources"] == [{"name": "x", "provider": reference("sizes")}]


def test_a_list_mode_claim_wants_its_own_list() -> None:
    plan = ask(listing({"name": "a", "template": config_map(x="1")}), MAPS)
    (wanted,) = plan.wanted
    assert (plan.provider, wanted.provider, wanted.name) == ("", "maps", "a")
    assert wanted.template == config_map(x="1", color="red")


def test_the_status_before_there_is_a_handle_follows_the_values() -> None:
    top = provider(
        "top",
        parameters=[{"name": "which", "allowUpdate": True}],
        linkedResourceProviders=[
            {"name": "sizes", "resourceName": "a", "when": "which == 'a'"},
            {"name": "maps", "resourceName": "b", "when": "which == 'b'"},
        ],
    )
    user_claim = asking({"which": "a"}, name="top")
    after = applied(user_claim, ask(user_claim, top, SIZES, MAPS))
    after["spec"] = {"provider": {"name": "top", "parameterValues": {"which": "b"}}}
    assert ask(after, top, SIZES, MAPS).status["resources"] == [{"name": "b", "provider": reference("maps")}]


def test_a_claim_with_a_handle_needs_none() -> None:
    plan = ask(asking({}, name="sizes"), SIZES, held=handle(**BOUND))
    assert (plan.halt, plan.wanted, plan.creation, plan.no_creation) == (Halt.NONE, (), None, "")


@pytest.mark.parametrize(
    ("spec", "reason"),
    [({"linkedResourceProviders": [{"name": "gone"}]}, "ProviderMissing"), ({"override": {"a": 1}}, "TemplateFailed")],
)
def test_a_provider_that_yields_nothing_usable_is_a_fault(spec: Any, reason: str) -> None:
    plan = ask(asking({}), provider("base", template={"definition": {"a": "{{ missing }}"}}, **spec))
    assert plan.fault is not None
    assert (plan.halt, plan.fault.reason, plan.wanted) == (Halt.FAULT, reason, ())
    assert plan.status["provider"] == {"name": "base", "parameterValues": {}}


# The handle that is made


def made(plan: ClaimPlan) -> dict[str, Any]:
    assert plan.creation is not None
    return plan.creation


def test_a_provider_mode_handle_has_effective_values_and_the_providers_lifespan() -> None:
    linked = provider("linked", lifespan={"default": "1m"}, vars={"v": 1}, **CREATES)
    top = provider(
        "top",
        parameters=[{"name": "n", "default": {"value": 2}}],
        lifespan={
            "default": "{{ resource_claim.annotations.mood == 'fine' and '2h' }}",
            "maximum": "{{ resource_claim.annotations.most | default('1d') }}",
        },
        linkedResourceProviders=[{"name": "linked"}],
    )
    assert made(ask(asking({}, name="top"), top, linked)) == {
        "resourceClaim": link("ResourceClaim", "user-ada", "mine"),
        "provider": {"name": "top", "parameterValues": {"n": 2}},
        "resources": [{"name": "linked", "provider": reference("linked")}],
        "lifespan": {
            "default": "2h",
            "end": "2026-11-21T14:00:00Z",
            "maximum": "{{ resource_claim.annotations.most | default('1d') }}",
        },
    }


def test_a_list_mode_handle_has_all_variables_and_the_shortest_lifespans() -> None:
    one = provider("one", vars={"a": 1, "b": 1}, lifespan={"default": "90m", "maximum": "1d"}, **CREATES)
    two = provider(
        "two", vars={"b": 2}, lifespan={"default": "1h", "maximum": "2d", "relativeMaximum": "5h"}, **CREATES
    )
    assert made(ask(listing(entry("one", "x"), entry("two", template={"data": {}})), one, two)) == {
        "resourceClaim": link("ResourceClaim", "user-ada", "mine"),
        "vars": {"a": 1, "b": 2},
        "resources": [entry("one", "x"), entry("two", template={"data": {}})],
        "lifespan": {"default": "1h", "end": "2026-11-21T13:00:00Z", "maximum": "1d", "relativeMaximum": "5h"},
    }


def test_variables_of_the_last_listed_resource_win_even_for_a_repeated_provider() -> None:
    one, two = provider("one", vars={"a": 1, "b": 1}, **CREATES), provider("two", vars={"b": 2, "c": 2}, **CREATES)
    listed = listing(entry("one", "x"), entry("two", "y"), entry("one", "z"))
    assert made(ask(listed, one, two))["vars"] == {"a": 1, "b": 1, "c": 2}


def test_a_handle_without_vars_and_lifespans_says_nothing_of_them() -> None:
    assert set(made(ask(listing(entry("base")), provider("base", **CREATES)))) == {"resourceClaim", "resources"}
    assert set(made(ask(asking({}, name="sizes"), SIZES))) == {"resourceClaim", "provider", "resources"}


@pytest.mark.parametrize(
    ("lifespan", "requested", "end"),
    [
        ({"default": "1h"}, None, "2026-11-21T13:00:00Z"),
        ({"default": "1h"}, "2026-11-21T12:10:00Z", "2026-11-21T12:10:00Z"),
        ({"default": "1h", "maximum": "2h"}, "2026-11-22T12:00:00Z", "2026-11-21T14:00:00Z"),
        ({"maximum": "3h", "relativeMaximum": "2h"}, None, "2026-11-21T14:00:00Z"),  # not the maximum's (D3)
        ({"maximum": "3h"}, None, "2026-11-21T15:00:00Z"),
        ({}, "2026-11-20T00:00:00Z", "2026-11-20T00:00:00Z"),
    ],
)
def test_the_end_is_what_is_asked_for_else_what_the_terms_give(lifespan: Any, requested: str | None, end: str) -> None:
    spec = {"lifespan": {"end": requested}} if requested else {}
    plan = ask(claim(provider={"name": "base"}, **spec), provider("base", lifespan=lifespan, **CREATES))
    assert made(plan)["lifespan"]["end"] == end


@pytest.mark.parametrize(
    ("user_claim", "why"),
    [
        (listing(entry("maps"), entry("closed")), "ResourceProvider closed disables creation"),
        (asking({}, name="closed"), "ResourceProvider closed disables creation"),
        (asking({}, name="top"), "ResourceProvider closed disables creation"),
        (claim(provider={"name": "sizes"}, disableCreation=True), "the claim disables creation"),
        (asking({}, name="shell"), ""),
    ],
    ids=["listed", "top level", "linked", "by the claim", "a top level that makes nothing forbids nothing"],
)
def test_creation_may_be_forbidden_while_a_free_handle_is_still_looked_for(user_claim: Any, why: str) -> None:
    closed = provider("closed", disableCreation=True, **CREATES)
    top = provider("top", linkedResourceProviders=[{"name": "closed"}])
    shell = provider("shell", disableCreation=True, linkedResourceProviders=[{"name": "sizes"}])
    plan = ask(user_claim, MAPS, SIZES, closed, top, shell)
    assert (plan.halt, plan.no_creation, plan.creation is None) == (Halt.NONE, why, bool(why))
    assert plan.wanted
    assert "conditions" not in plan.status


@pytest.mark.parametrize(
    ("lifespan", "user_claim", "reason"),
    [
        ({"default": "soon"}, None, "DurationUnreadable"),
        ({"maximum": "{{ missing }}"}, None, "TemplateFailed"),
        ({}, "tomorrow", "MomentUnreadable"),
    ],
)
def test_a_fault_in_creating_a_handle_prevents_no_binding(lifespan: Any, user_claim: Any, reason: str) -> None:
    spec = {"lifespan": {"end": user_claim}} if user_claim else {}
    plan = ask(claim(provider={"name": "base"}, **spec), provider("base", lifespan=lifespan, **CREATES))
    assert plan.fault is not None
    assert (plan.halt, plan.fault.reason, plan.creation) == (Halt.NONE, reason, None)
    assert len(plan.wanted) == 1
    assert plan.no_creation == stalled(plan) == plan.fault.message


def test_a_claim_with_an_unreadable_start_is_not_bound() -> None:
    user_claim = claim(provider={"name": "base"}, lifespan={"start": "2026-11-21T12:00:00+24:00"})
    plan = ask(user_claim, provider("base", **CREATES))
    assert plan.fault is not None
    assert (plan.halt, plan.fault.reason, plan.annotations) == (Halt.FAULT, "MomentUnreadable", {})
    assert "spec.lifespan.start" in stalled(plan)
    served = {**user_claim, "status": {"lifespan": {"start": "2026-11-20T12:00:00Z"}}}
    assert ask(served, provider("base", **CREATES), held=handle(**BOUND)).halt is Halt.NONE


# By the clock


def checking(check: str) -> dict[str, Any]:
    return {"validation": {"checks": [{"name": "c", "check": check}]}}


NOW_DEFINED = {"definition": {"at": "{{ now() }}"}}


@pytest.mark.parametrize(
    ("base", "user_claim", "by_clock"),
    [
        (provider("base", **CREATES), asking({}), False),
        (provider("base", template=NOW_DEFINED), asking({}), True),
        (provider("base", template=NOW_DEFINED, approval={"required": True}), asking({}), False),
        (provider("base", parameters=[{"name": "p", "default": {"template": "{{ now() }}"}}]), asking({}), False),
        (provider("base", parameters=[{"name": "p", **checking("now() == value")}]), asking({"p": 1}), True),
        (provider("base", **checking("timestamp.utcnow == 0")), listing(entry("base")), True),
    ],
    ids=["nothing", "what is wanted", "before the approval", "accepted values", "refused values", "a refused template"],
)
def test_a_value_that_may_change_by_itself_is_observed_by_the_clock(base: Any, user_claim: Any, by_clock: bool) -> None:
    assert ask(user_claim, base).by_clock is by_clock
    # With a handle its own plan says it, unless the claim's own edit is refused.
    bound = ask(user_claim, base, held=handle(**BOUND))
    assert bound.by_clock is (bound.halt is Halt.INVALID)


# Written once, it is as it has to be


TOP = provider(
    "top",
    parameters=[
        {"name": "password", "default": {"template": "{{ '[a-z]{9}' | strgen }}"}},
        {"name": "n", "default": {"value": 2}, "allowUpdate": True},
    ],
    resourceClaimAnnotations={"a": "b"},
    resourceClaimLabels={"c": "d"},
    lifespan={"default": "1h"},
    linkedResourceProviders=[{"name": "sizes", "parameterValues": {"size": "{{ n | int }}"}}],
    template={"definition": {"data": {"password": "{{ password }}"}}},
)


@pytest.mark.parametrize(
    "user_claim",
    [
        asking({}, name="top"),
        asking({"n": 3}, name="top"),
        asking({"n": 3, "unknown": 1}, name="top"),
        asking({"n": 3}, accepted={"n": 2, "gone": 1}, name="top"),
        asking({"size": 9}, name="sizes"),
        asking({}, name="gone"),
        asking({}, name="base"),
        claim({"approval": {"state": "approved"}}, provider={"name": "base"}),
        listing(entry("maps", template=config_map(x="1")), {"name": "b", "template": config_map()}),
        listing(entry("maps", template={"data": {"color": "pink"}})),
        listing({"template": {"kind": "Secret"}}),
        claim(),
    ],
)
@pytest.mark.parametrize("held", [None, handle(entry("maps"), vars={"x": 1}, **BOUND)], ids=["waiting", "bound"])
def test_asked_again_a_plan_that_was_written_changes_nothing(user_claim: Any, held: Any) -> None:
    providers = (TOP, SIZES, MAPS, APPROVING)
    first = ask(user_claim, *providers, held=held)
    after = applied(user_claim, first)
    again = ask(after, *providers, held=held, now=LATER)
    assert (again.annotations, again.labels, again.resources) == ({}, {}, None)
    assert again.status == first.status
    assert (again.halt, again.fault, again.wanted) == (first.halt, first.fault, first.wanted)


def test_references_are_written_in_the_configured_domain() -> None:
    entries = [{"provider": {"name": "maps", "apiVersion": "poolboy.dev.local/v1", "namespace": "x"}}]
    plan = ask(listing(*entries), MAPS)
    assert plan.resources is not None
    expected = {"apiVersion": f"{NAMES.domain}/v1", "kind": "ResourceProvider", "name": "maps"}
    assert plan.resources[0]["provider"] == {**expected, "namespace": OPERATOR_NAMESPACE}


def test_a_claim_in_list_mode_without_its_providers_is_a_bug_of_the_caller() -> None:
    question = ClaimQuestion(names=NAMES, now=datetime(2026, 1, 1, tzinfo=UTC), claim=listing(entry("maps")))
    with pytest.raises(ValueError, match="zip"):
        plan_claim(question)
