"""One look at a handle: edits, resources, lifespan, statuses and conditions as they come out in the whole plan."""

from __future__ import annotations

import copy
from datetime import datetime, timedelta
from typing import Any

import jsonpatch
import pytest
from claim_domain import NAMES
from claim_scenes import BOUND, NOW, POOLED, asking, claim, config_map, entry, handle, link, provider, reference

from domain.claims import handle_evaluation
from domain.claims.evaluator_interface import HandlePlan, HandleQuestion, Requester
from domain.claims.handle_evaluation import plan_handle
from domain.claims.json_objects import objects_at, text_at
from domain.claims.lifespan_end import RequestedEnd
from domain.claims.linked_providers import Resources
from domain.claims.phases import settled
from domain.claims.resource_definitions import definitions
from domain.resource import timestamp

HOUR = timedelta(hours=1)


def maps(name: str = "base", **spec: Any) -> dict[str, Any]:
    """A provider that makes a ConfigMap and says by its data how it is."""
    checks = {"healthCheck": "data.up | default('yes') == 'yes'", "readinessCheck": "data.ready | default('') == 'yes'"}
    return provider(name, **{"override": {"apiVersion": "v1", "kind": "ConfigMap"}, **checks, **spec})


READY = {"data": {"ready": "yes"}}


def state(name: str = "guid0-b7k2q", **data: str) -> dict[str, Any]:
    """A live ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "uid": "u"}, "data": data}


def ask(
    held: dict[str, Any],
    *providers: dict[str, Any],
    states: Any = (),
    now: datetime = NOW,
    **more: Any,
) -> HandlePlan:
    known = {each["metadata"]["name"]: each for each in providers}
    question = HandleQuestion(names=NAMES, now=now, providers=known, handle=held, states=tuple(states), **more)
    before = copy.deepcopy(question)
    plan = plan_handle(question)
    assert question == before, "the question was changed"
    return plan


def bound(user_claim: dict[str, Any], held: dict[str, Any], *providers: dict[str, Any], **more: Any) -> HandlePlan:
    """The plan for a handle and the claim that holds it, which was accepted unless said otherwise."""
    listed = objects_at(user_claim, "spec", "resources")
    assigned = tuple(text_at(each, "provider", "name") for each in listed)
    return ask(held, *providers, **{"push": True, "assigned": assigned, "claim": user_claim, **more})


def entries(plan: HandlePlan) -> list[Any]:
    return [*objects_at(plan.spec, "resources")]


def lifespan(plan: HandlePlan) -> dict[str, Any]:
    assert plan.claim_status is not None
    return plan.claim_status["lifespan"]  # type: ignore[return-value]


def stalled(status: Any) -> list[tuple[str, str]]:
    """Reason and message of the condition, if it is there."""
    return [(text_at(each, "reason"), text_at(each, "message")) for each in objects_at(status, "conditions")]


class Live:
    """A claim, its handle and their resources, updated as the plan says."""

    def __init__(self, user_claim: Any, held: Any, *providers: Any, states: Any = ()) -> None:
        self.claim, self.handle, self.providers = user_claim, held, providers
        self.states: list[Any] = list(states)
        self.honoured: RequestedEnd | None = None

    def look(self, now: datetime = NOW, **more: Any) -> HandlePlan:
        """One pass: again while something had to be made or changed, then the statuses."""
        for _ in range(5):
            length = len(objects_at(self.handle, "spec", "resources"))
            self.states += [None] * (length - len(self.states))
            more = {"states": self.states, "honoured": self.honoured, "now": now, **more}
            plan = (
                ask(self.handle, *self.providers, **more)
                if self.claim is None
                else bound(self.claim, self.handle, *self.providers, **more)
            )
            self.handle = {**self.handle, "spec": plan.spec}
            self.states += [None] * (len(entries(plan)) - len(self.states))
            for index, definition in plan.creations:
                self.states[index] = definition
            for each in plan.updates:
                self.states[each.index] = jsonpatch.apply_patch(self.states[each.index], list(each.patch))
            if not plan.creations and not plan.updates:
                break
        else:
            raise AssertionError("it never comes to rest")
        self.handle = {**self.handle, "status": plan.handle_status}
        self.honoured = plan.wish
        if self.claim is not None:
            self.claim = {**self.claim, "status": plan.claim_status}
            if plan.requested_end:
                requested = {**self.claim["spec"].get("lifespan", {}), "end": plan.requested_end}
                self.claim["spec"] = {**self.claim["spec"], "lifespan": requested}
        return plan


# Two entries that come to one name


def twins(*names: str, **first: Any) -> dict[str, Any]:
    """A handle whose entries come to the same ConfigMap."""
    template = {**config_map(), "metadata": {"namespace": "things", "generateName": "box-"}}
    every = [entry("base", name, template=template) for name in names]
    return handle({**every[0], **first}, *every[1:])


def test_two_resources_are_never_one_object() -> None:
    live = Live(None, twins("a", "b", "c"), maps())
    plan = live.look()
    assert [index for index, _ in plan.creations] == []  # the observation after its creation
    assert [state is not None for state in live.states] == [True, False, False]
    assert "reference" not in entries(plan)[1]
    shown = objects_at(plan.handle_status, "resources")
    assert [text_at(each, "waitingFor") for each in shown] == ["", "Resource Definition", "Resource Definition"]
    ((reason, message),) = stalled(plan.handle_status)
    assert reason == "ResourceDoubled"
    assert "resource b of ResourceProvider base would be the same ConfigMap things/box-b7k2q as resource a" in message
    assert "resource c" in message
    assert plan.waits == (
        "resource b of base waits for a name of its own: another resource of the handle defines the same object",
        "resource c of base waits for a name of its own: another resource of the handle defines the same object",
    )


def test_an_entry_that_shares_an_object_leaves_it_to_the_first() -> None:
    """Poolboy let both write the one object, and its annotations flipped at every pass."""
    shared = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "things", "name": "box-b7k2q"}
    held = twins("a", "b")
    held["spec"]["resources"] = [{**each, "reference": shared} for each in held["spec"]["resources"]]
    there = {**state("box-b7k2q"), "metadata": {"name": "box-b7k2q", "namespace": "things"}}
    live = Live(None, held, maps(), states=[there, there])
    plan = live.look()
    assert live.states[0]["metadata"]["annotations"][f"{NAMES.domain}/resource-index"] == "0"
    assert live.states[1] == there
    assert stalled(plan.handle_status)[0][0] == "ResourceDoubled"


def test_a_recorded_resource_keeps_its_object_from_an_earlier_entry() -> None:
    shared = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "things", "name": "box-b7k2q"}
    held = twins("a", "b")
    held["spec"]["resources"][1]["reference"] = shared
    plan = ask(held, maps(), states=[None, None])
    assert [index for index, _ in plan.creations] == [1]
    assert "resource a of" in stalled(plan.handle_status)[0][1].partition(" would be")[0]


def test_the_same_name_in_another_namespace_or_of_another_kind_is_another_object() -> None:
    template = {**config_map(), "metadata": {"namespace": "things", "generateName": "box-"}}
    elsewhere = {**template, "metadata": {"namespace": "others", "generateName": "box-"}}
    secret = {**template, "kind": "Secret"}
    every = [entry("base", name, template=each) for name, each in (("a", template), ("b", elsewhere), ("c", secret))]
    plan = ask(handle(*every), maps(override={}), states=[None, None, None])
    assert [index for index, _ in plan.creations] == [0, 1, 2]
    assert stalled(plan.handle_status) == []


# The handle's entries


def test_the_claims_values_reach_the_handle_and_its_templates() -> None:
    base = maps(template={"definition": {"data": {"n": "{{ n }}"}}})
    held = handle(entry("base", "base", template={"data": {"n": "1"}}), provider={"name": "base"}, **BOUND)
    plan = bound(asking({"n": 1}, accepted={"n": 2, "m": 3}), held, base)
    assert plan.spec["provider"] == {"name": "base", "parameterValues": {"n": 2, "m": 3}}
    assert entries(plan)[0]["template"] == {"data": {"n": "2"}}


def test_nothing_of_a_claim_that_was_not_accepted_reaches_the_handle() -> None:
    base = maps(template={"definition": {"data": {"n": "{{ n }}"}}})
    held = handle(
        entry("base", "base", template={"data": {"n": "1"}}),
        provider={"name": "base", "parameterValues": {"n": 1}},
        lifespan={"end": "2026-11-22T12:00:00Z"},
        **BOUND,
    )
    user_claim = claim(
        {"provider": {"name": "base", "parameterValues": {"n": 1}, "validationErrors": ["no"]}},
        provider={"name": "base", "parameterValues": {"n": 2}},
        lifespan={"end": "2026-11-23T12:00:00Z"},
        autoDelete={"when": "true"},
        autoDetach={"when": "true"},
    )
    plan = bound(user_claim, held, base, push=False)
    assert plan.spec["provider"] == held["spec"]["provider"]
    assert plan.spec["lifespan"] == held["spec"]["lifespan"]
    assert entries(plan)[0]["template"] == {"data": {"n": "1"}}
    assert (plan.auto_delete, plan.auto_detach) == (False, False)


def test_a_list_mode_claims_edits_reach_the_templates_and_the_provider_goes() -> None:
    held = handle(entry("base", template={"data": {"x": "1", "y": "1"}}), provider={"name": "base"}, **BOUND)
    user_claim = claim(resources=[entry("base", template={"data": {"x": "2"}}), entry("base", "second")])
    plan = bound(user_claim, held, maps())
    assert "provider" not in plan.spec
    assert [each["template"] for each in entries(plan)[:1]] == [{"data": {"x": "2", "y": "1"}}]
    assert (entries(plan)[1]["name"], entries(plan)[1]["provider"]) == ("second", reference("base"))


def test_another_provider_in_an_entry_is_refused_and_said() -> None:
    held = handle(entry("base", template={"data": {"x": "1"}}), **BOUND)
    plan = bound(claim(resources=[entry("other", template={"data": {"x": "2"}})]), held, maps(), maps("other"))
    assert entries(plan)[0]["provider"] == reference("base")
    assert entries(plan)[0]["template"] == {"data": {"x": "1"}}
    assert len(plan.refused) == 1
    assert "switching to ResourceProvider other is refused" in plan.refused[0]


def test_a_free_handles_entries_follow_its_own_values() -> None:
    base = maps(
        parameters=[{"name": "m", "default": {"value": "d"}}],
        template={"definition": {"data": {"n": "{{ n }}", "m": "{{ m }}", "guid": "{{ resource_handle.guid }}"}}},
    )
    plan = ask(handle(provider={"name": "base", "parameterValues": {"n": 1}}, **POOLED), base)
    assert entries(plan)[0]["template"] == {"data": {"n": "1", "m": "d", "guid": "b7k2q"}}


@pytest.mark.parametrize(
    "status", [{}, {"provider": {"name": "other", "parameterValues": {"n": 9}}}], ids=["blanked", "of another provider"]
)
def test_a_claim_that_knows_no_values_of_the_provider_leaves_those_of_the_handle(status: Any) -> None:
    base = maps(template={"definition": {"data": {"n": "{{ n | default('lost') }}"}}})
    held = handle(entry("base", "base"), provider={"name": "base", "parameterValues": {"n": 1}}, **BOUND)
    plan = bound(claim(status, provider={"name": "base"}), held, base, push=False)
    assert entries(plan)[0]["template"] == {"data": {"n": "1"}}


def test_a_missing_provider_leaves_the_entries_and_is_reported() -> None:
    held = handle(entry("base", "base", template={"data": {}}), provider={"name": "gone"}, **BOUND)
    plan = bound(claim(resources=[entry("base")]), held, maps(), states=[state(**{"ready": "yes"})], push=False)
    assert [fault.reason for fault in plan.faults] == ["ProviderMissing"]
    assert entries(plan)[0]["template"] == {"data": {}}
    assert plan.handle_status["ready"] is True
    assert plan.updates, "the live resource is still looked after"


# Definitions, creations, updates


def test_references_are_recorded_before_anything_is_made() -> None:
    plan = ask(handle(entry("base", "a"), entry("base", "b")), maps())
    recorded = [{"apiVersion": "v1", "kind": "ConfigMap", "name": f"guid{index}-b7k2q"} for index in (0, 1)]
    assert [each["reference"] for each in entries(plan)] == recorded
    assert [each["reference"] for each in plan.handle_status["resources"]] == recorded  # type: ignore[index, call-overload, union-attr]
    assert [(index, made["metadata"]["name"]) for index, made in plan.creations] == [  # type: ignore[index, call-overload]
        (0, "guid0-b7k2q"),
        (1, "guid1-b7k2q"),
    ]


def test_a_reference_that_only_the_status_has_is_honoured_and_put_in_the_spec() -> None:
    recorded = {"apiVersion": "v1", "kind": "ConfigMap", "name": "old", "namespace": "x"}
    plan = ask(handle(entry("base"), status={"resources": [{"reference": recorded}]}), maps())
    assert entries(plan)[0]["reference"] == recorded
    assert plan.creations[0][1]["metadata"]["name"] == "old"  # type: ignore[index, call-overload]


@pytest.mark.parametrize("removed", [0, 1])
@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_an_entry_that_a_person_removes_comes_back_with_its_object(removed: int, kind: str) -> None:
    top = maps("top", override={**config_map(), "kind": kind}, linkedResourceProviders=[{"name": "base"}])
    plan = ask(handle(provider={"name": "top"}), top, maps())
    before = entries(plan)
    references = {each["name"]: each["reference"] for each in before}
    held = handle(*before, provider={"name": "top"}, status=plan.handle_status)
    del held["spec"]["resources"][removed]
    for _ in range(2):
        plan = ask(held, top, maps())
        assert not stalled(plan.handle_status)
        assert {each["name"]: each["reference"] for each in entries(plan)} == references
        held = handle(*entries(plan), provider={"name": "top"}, status=plan.handle_status)


IMPOSSIBLE = [{"name": ".."}, {"name": "a/status"}, {"name": "a%b"}, {"name": "a", "namespace": ".."}]


@pytest.mark.parametrize("metadata", IMPOSSIBLE)
def test_a_name_that_no_object_can_have_is_reported_and_never_recorded(metadata: Any) -> None:
    plan = ask(handle(entry("base")), maps(override={**config_map(), "metadata": metadata}))
    ((reason, message),) = stalled(plan.handle_status)
    assert (reason, "no object can have the name" in message) == ("DefinitionUnusable", True)
    assert (plan.creations, "reference" in entries(plan)[0]) == ((), False)


@pytest.mark.parametrize("metadata", [*IMPOSSIBLE, {"name": ""}])
def test_a_recorded_name_that_no_object_can_have_is_replaced(metadata: Any) -> None:
    recorded = {"apiVersion": "v1", "kind": "ConfigMap", **metadata}
    plan = ask(handle(entry("base", reference=recorded)), maps())
    assert entries(plan)[0]["reference"] == {"apiVersion": "v1", "kind": "ConfigMap", "name": "guid0-b7k2q"}


def test_a_namespace_that_was_forgotten_is_recorded_before_the_object_is_made_in_it() -> None:
    recorded = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}
    placed = entry("base", template=config_map("a"), reference=recorded)
    plan = ask(handle(placed), maps())
    assert entries(plan)[0]["reference"] == {**recorded, "namespace": "things"}
    assert plan.creations[0][1]["metadata"]["namespace"] == "things"  # type: ignore[index, call-overload]
    assert plan.handle_status["resources"][0]["reference"] == {**recorded, "namespace": "things"}  # type: ignore[index, call-overload]


def test_a_cluster_object_keeps_its_reference_whatever_namespace_a_template_names() -> None:
    recorded = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}
    placed = entry("base", template=config_map("a"), reference=recorded)
    assert entries(ask(handle(placed), maps(), states=[state("a")]))[0]["reference"] == recorded


def test_an_existing_object_is_changed_through_the_filters_and_a_missing_one_created() -> None:
    base = maps(updateFilters=[{"pathMatch": "/data/x"}])
    held = handle(entry("base", template={"data": {"x": "2", "y": "2"}}), entry("base", "b"))
    plan = ask(held, base, states=[state(x="1", y="1"), None])
    (operations,) = plan.updates
    assert operations.index == 0
    assert [(each["op"], each["path"]) for each in operations.patch] == [
        ("add", "/metadata/annotations"),
        ("replace", "/data/x"),
    ]
    assert [index for index, _ in plan.creations] == [1]


def test_a_claim_that_a_handle_manages_stays_initialised() -> None:
    """Removing the mark would apply the defaults again, and the claim would write it again in its next pass."""
    inner = maps(override={"apiVersion": NAMES.api_version, "kind": "ResourceClaim"})
    live = Live(None, handle(entry("base")), inner)
    live.look()
    metadata = live.states[0]["metadata"]
    metadata["annotations"] |= {NAMES.init_timestamp_annotation: timestamp(NOW), NAMES.resource_index_annotation: "7"}
    (operations,) = ask(live.handle, inner, states=live.states).updates
    assert [each["op"] for each in operations.patch] == ["replace"]


def test_a_resource_that_was_taken_away_is_made_again_under_its_name() -> None:
    live = Live(None, handle(entry("base")), maps())
    live.look()
    live.states = [None]
    plan = ask(live.handle, maps(), states=live.states)
    assert [made["metadata"]["name"] for _, made in plan.creations] == ["guid0-b7k2q"]  # type: ignore[index, call-overload]


LINKED = maps("linked", readinessCheck="data.ready | default('') == 'yes'")
TOP = maps(
    "top",
    linkedResourceProviders=[
        {
            "name": "linked",
            "waitFor": "linked_resource_state.data.ready | default('') == 'yes'",
            "templateVars": [{"name": "at", "from": "/data/at"}],
        }
    ],
    override={"apiVersion": "v1", "kind": "ConfigMap", "data": {"at": "{{ at }}"}},
    template={"enable": True},
)


def test_a_linked_resource_is_waited_for_and_its_change_ends_the_wait() -> None:
    live = Live(None, handle(provider={"name": "top"}), TOP, LINKED)
    plan = live.look()
    assert [bool(each) for each in live.states] == [True, False]
    assert "waitingFor" not in live.handle["status"]["resources"][0]
    assert live.handle["status"]["resources"][1]["waitingFor"] == "Linked ResourceProvider"
    assert plan.waits == ("resource top of top waits for a linked resource",)
    live.states[0] = {**live.states[0], "data": {"ready": "yes", "at": "here"}}
    plan = live.look()
    assert live.states[1]["data"] == {"at": "here"}
    assert "waitingFor" not in live.handle["status"]["resources"][1]
    assert plan.waits == ()


def test_a_resource_that_requires_a_claim_is_made_once_there_is_one() -> None:
    base = maps(resourceRequiresClaim=True)
    free = ask(handle(entry("base", "a"), **POOLED), base)
    assert free.creations == ()
    assert free.handle_status["resources"] == [{"name": "a", "ready": False, "waitingFor": "ResourceClaim"}]
    assert free.waits == ("resource a of base waits for a claim",)
    held = handle(entry("base", "a"), **POOLED, **BOUND, status=free.handle_status)
    plan = bound(claim(resources=[entry("base", "a")]), held, base)
    assert len(plan.creations) == 1
    assert "waitingFor" not in objects_at(plan.claim_status, "resources")[0]


def test_the_requester_is_seen_by_overrides() -> None:
    base = maps(
        override={"apiVersion": "v1", "kind": "ConfigMap", "data": {"who": "{{ requester_user.metadata.name }}"}},
        template={"enable": True},
    )
    plan = ask(handle(entry("base"), **BOUND), base, requester=Requester(user={"metadata": {"name": "ada"}}))
    assert plan.creations[0][1]["data"] == {"who": "ada"}


def test_a_handle_without_resources_is_unknown_and_asks_for_nothing() -> None:
    plan = ask(handle(), maps())
    assert plan == HandlePlan()


# Faults


BROKEN = maps(
    template={"enable": True}, override={"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": "{{ gone }}"}}
)


@pytest.mark.parametrize(
    ("base", "reason", "words"),
    [
        (BROKEN, "TemplateFailed", "ResourceProvider base, override: 'gone' is undefined"),
        (maps(override={}), "DefinitionUnusable", "the definition has no apiVersion"),
        (maps(linkedResourceProviders=[{"name": "gone"}]), "ProviderMissing", "ResourceProvider gone: not found"),
        (maps(updateFilters=[{"pathMatch": "("}]), "PatternUnusable", "base, updateFilters: regular expression '('"),
        (provider("another"), "ProviderMissing", "ResourceProvider base: not found"),
    ],
    ids=["template", "definition", "link", "filter", "provider"],
)
def test_a_fault_is_reported_on_both_and_the_rest_happens(base: Any, reason: str, words: str) -> None:
    recorded = {"apiVersion": "v1", "kind": "ConfigMap", "name": "guid0-b7k2q"}
    held = handle(
        entry("base", "base", reference=recorded),
        provider={"name": "base"},
        lifespan={"default": "1h", "end": timestamp(NOW + HOUR)},
        **BOUND,
    )
    user_claim = claim(
        {"lifespan": {"start": timestamp(NOW)}}, provider={"name": "base"}, lifespan={"end": timestamp(NOW)}
    )
    plan = bound(user_claim, held, base, states=[state(ready="yes", y="2")])
    assert reason in [fault.reason for fault in plan.faults]
    ((handle_reason, handle_message),) = stalled(plan.handle_status)
    ((claim_reason, claim_message),) = stalled(plan.claim_status)
    assert (handle_reason, claim_reason) == (plan.faults[0].reason, "ResourceHandleStalled")
    assert words in handle_message
    assert handle_message == claim_message
    assert plan.creations == ()
    assert lifespan(plan)["end"] == timestamp(NOW)
    if base["metadata"]["name"] == "base":
        assert plan.handle_status["ready"] is True


@pytest.mark.parametrize("base", [BROKEN, maps(override={})])
def test_while_one_definition_fails_nothing_is_made_or_changed(base: Any) -> None:
    held = handle(entry("other"), entry("other"), entry("base"))
    plan = ask(held, base, maps("other"), states=[state(), None, state()])
    assert (plan.creations, plan.updates) == ((), ())
    assert all("reference" not in each for each in entries(plan))


def test_while_definitions_fail_what_was_waited_for_stays_shown() -> None:
    held = handle(entry("base", "a"), status={"resources": [{"name": "a", "waitingFor": "ResourceClaim"}]})
    assert objects_at(ask(held, BROKEN).handle_status, "resources")[0]["waitingFor"] == "ResourceClaim"


def test_the_condition_goes_with_the_fault_on_both() -> None:
    live = Live(claim(resources=[entry("base")]), handle(entry("base"), **BOUND), BROKEN)
    live.look()
    assert stalled(live.handle["status"])
    assert stalled(live.claim["status"])
    live.providers = (maps(),)
    live.look()
    assert not stalled(live.handle["status"])
    assert not stalled(live.claim["status"])


def test_a_claims_own_fault_is_left_by_an_evaluation_that_accepts_nothing() -> None:
    own = {"type": "Stalled", "status": "True", "reason": "ProviderImmutable", "message": "no"}
    user_claim = claim({"conditions": [own]}, resources=[entry("base")])
    held = handle(entry("base"), **BOUND)
    assert stalled(bound(user_claim, held, maps(), push=False).claim_status) == [("ProviderImmutable", "no")]
    assert stalled(bound(user_claim, held, maps()).claim_status) == []


def test_a_check_that_cannot_be_evaluated_is_no_fault_but_explained() -> None:
    free = handle(entry("base"))
    plan = ask(free, maps(healthCheck="1 // 0"), states=[state()])
    assert plan.faults == ()
    assert "conditions" not in plan.handle_status
    why = settled(free, plan, plan.faults, claimed=False, look_at=None).why
    assert why.startswith("ResourceProvider base, healthCheck: ")


# The lifespan of a bound handle


def when(field: str, expression: str) -> dict[str, Any]:
    return {field: {"when": expression}}


def long(status: Any = None, end: str = "", **spec: Any) -> dict[str, Any]:
    requested = {"lifespan": {"end": end}} if end else {}
    return claim(status, resources=[entry("base")], **requested, **spec)


def holding(**terms: str) -> dict[str, Any]:
    return handle(entry("base"), **({"lifespan": terms} if terms else {}), **BOUND)


BEGUN = {"lifespan": {"start": "2026-11-21T11:00:00Z"}}
BY_MOOD = "{{ resource_claim.annotations.mood == 'fine' and '3h' }}"
FIRST = {"lifespan": {"start": "2026-11-21T10:00:00Z", "firstReady": "2026-11-21T11:30:00Z"}}


@pytest.mark.parametrize(
    ("status", "terms", "requested", "end", "cut"),
    [
        (BEGUN, {}, "2026-11-21T18:00:00Z", "2026-11-21T18:00:00Z", False),
        (BEGUN, {"end": "2026-11-21T13:00:00Z"}, "2026-11-21T18:00:00Z", "2026-11-21T18:00:00Z", False),
        (BEGUN, {"end": "2026-11-21T13:00:00Z"}, "", "2026-11-21T13:00:00Z", False),
        (BEGUN, {"end": "2026-11-21T13:00:00Z"}, "2026-11-20T00:00:00Z", "2026-11-20T00:00:00Z", False),
        (BEGUN, {"maximum": "2h"}, "2026-11-21T18:00:00Z", "2026-11-21T13:00:00Z", True),
        (FIRST, {"maximum": "2h"}, "2026-11-21T18:00:00Z", "2026-11-21T13:30:00Z", True),
        ({}, {"maximum": "2h"}, "2026-11-21T18:00:00Z", "2026-11-21T14:00:00Z", True),
        (BEGUN, {"relativeMaximum": "2h"}, "2026-11-21T18:00:00Z", "2026-11-21T14:00:00Z", True),
        (BEGUN, {"maximum": BY_MOOD}, "2027-01-01T00:00:00Z", "2026-11-21T14:00:00Z", True),
    ],
    ids=[
        "new",
        "another",
        "nothing",
        "past",
        "from the start",
        "from first ready",
        "from the bind",
        "relative",
        "rendered",
    ],
)
def test_the_end_that_a_claim_asks_for_is_settled(status: Any, terms: Any, requested: str, end: str, cut: bool) -> None:
    plan = bound(long(status, requested), holding(**terms), maps(), states=[state()])
    assert plan.spec["lifespan"] == {**terms, "end": end}
    assert lifespan(plan)["end"] == end
    assert plan.end is not None
    assert (timestamp(plan.end), plan.end_was_cut) == (end, cut)
    assert plan.requested_end == ""


def test_a_rolling_end_moves_late_and_is_announced_once() -> None:
    live = Live(long(BEGUN, "2026-12-01T00:00:00Z"), holding(relativeMaximum="2h"), maps(), states=[state()])
    first = live.look()
    assert (first.end, first.look_at, first.end_was_cut) == (NOW + 2 * HOUR, NOW + HOUR, True)
    soon = live.look(NOW + timedelta(minutes=59))
    assert (soon.end, soon.look_at, soon.end_was_cut) == (NOW + 2 * HOUR, NOW + HOUR, False)
    moved = live.look(NOW + HOUR)
    assert (moved.end, moved.look_at, moved.end_was_cut) == (NOW + 3 * HOUR, NOW + 2 * HOUR, False)
    assert live.claim["status"]["lifespan"]["end"] == "2026-11-21T15:00:00Z"


def test_a_claim_that_is_not_accepted_keeps_its_end_and_what_was_honoured() -> None:
    requested_end = RequestedEnd(end=NOW + HOUR)
    held = holding(end=timestamp(NOW + HOUR))
    plan = bound(
        long(BEGUN, "2026-12-01T00:00:00Z"), held, maps(), states=[state()], push=False, honoured=requested_end
    )
    assert (plan.end, plan.wish, plan.look_at) == (NOW + HOUR, requested_end, None)


def test_a_wish_that_was_taken_back_leaves_the_end() -> None:
    held = holding(end=timestamp(NOW + HOUR))
    plan = bound(long(BEGUN), held, maps(), states=[state()], honoured=RequestedEnd(end=NOW + HOUR))
    assert (plan.end, plan.wish) == (NOW + HOUR, None)


@pytest.mark.parametrize(
    ("requested", "terms", "reason", "shown"),
    [
        ("tomorrow", {"maximum": "2h"}, "MomentUnreadable", {"maximum": "2h"}),
        ("2026-11-21T18:00:00Z", {"maximum": "soon"}, "DurationUnreadable", {}),
        ("", {"relativeMaximum": "soon"}, "DurationUnreadable", {}),
        ("", {"default": "soon"}, "DurationUnreadable", {}),
        ("2026-11-21T18:00:00Z", {"maximum": "{{ gone }}"}, "TemplateFailed", {"maximum": "9h"}),
    ],
)
def test_a_lifespan_that_cannot_be_read_is_reported_and_ends_nothing(
    requested: str, terms: Any, reason: str, shown: dict[str, str]
) -> None:
    end = timestamp(NOW + HOUR)
    status = {"lifespan": {**BEGUN["lifespan"], "maximum": "9h"}}
    plan = bound(long(status, requested), holding(end=end, **terms), maps(), states=[state()])
    assert {fault.reason for fault in plan.faults} == {reason}
    assert plan.end == NOW + HOUR
    assert lifespan(plan) == {"start": "2026-11-21T11:00:00Z", "end": end, **shown}


def test_maxima_are_shown_rendered_in_one_unit() -> None:
    held = holding(maximum="{{ '1h30m' }}", relativeMaximum="2h", end=timestamp(NOW))
    plan = bound(long(BEGUN), held, maps(), states=[state()])
    assert (lifespan(plan)["maximum"], lifespan(plan)["relativeMaximum"]) == ("90m", "2h")
    assert plan.spec["lifespan"] == held["spec"]["lifespan"]


# First ready


def test_the_default_restarts_when_the_resources_are_ready_for_the_first_time() -> None:
    live = Live(long(), holding(default="1h", end=timestamp(NOW + HOUR)), maps())
    live.look()
    assert live.claim["status"]["lifespan"] == {"start": timestamp(NOW), "end": timestamp(NOW + HOUR)}
    live.states = [{**live.states[0], **READY}]
    ready = NOW + timedelta(minutes=5)
    plan = live.look(ready)
    assert plan.requested_end == timestamp(ready + HOUR)
    assert live.claim["status"]["lifespan"] == {
        "start": timestamp(NOW),
        "end": timestamp(ready + HOUR),
        "firstReady": timestamp(ready),
    }
    assert live.handle["spec"]["lifespan"]["end"] == timestamp(ready + HOUR)
    later = live.look(ready + HOUR / 2)
    assert (later.end, later.requested_end) == (ready + HOUR, "")


@pytest.mark.parametrize(
    ("requested_end", "terms", "end", "requested"),
    [
        ("", {"end": "2026-11-21T13:00:00Z"}, "2026-11-21T13:00:00Z", ""),
        ("2026-11-21T20:00:00Z", {"default": "1h"}, "2026-11-21T20:00:00Z", ""),
        ("2026-11-21T12:00:00Z", {"default": "1h"}, "2026-11-21T13:00:00Z", "2026-11-21T13:00:00Z"),  # start + default
        ("2026-11-21T20:00:00Z", {"maximum": "2h"}, "2026-11-21T14:00:00Z", ""),  # counted from first ready
        ("2026-11-21T13:00:00Z", {"default": "2h"}, "2026-11-21T14:00:00Z", "2026-11-21T14:00:00Z"),  # start + default
    ],
    ids=["no default", "another wish", "the wish is the default", "the maximum", "a longer default"],
)
def test_first_ready_leaves_other_ends(requested_end: str, terms: Any, end: str, requested: str) -> None:
    plan = bound(long(BEGUN, requested_end), holding(**terms), maps(), states=[state(ready="yes")])
    assert lifespan(plan)["firstReady"] == timestamp(NOW)
    assert (timestamp(plan.end or NOW), plan.requested_end) == (end, requested)


def test_an_end_that_is_asked_for_already_is_not_written_again() -> None:
    begun = {"lifespan": {"start": timestamp(NOW)}}
    plan = bound(long(begun, timestamp(NOW + HOUR)), holding(default="1h"), maps(), states=[state(ready="yes")])
    assert (plan.end, plan.requested_end) == (NOW + HOUR, "")


def test_first_ready_is_made_up_for_when_only_the_handles_status_was_written() -> None:
    held = {**holding(default="1h", end=timestamp(NOW + HOUR / 2)), "status": {"ready": True, "healthy": True}}
    plan = bound(long(BEGUN), held, maps(), states=[state(ready="yes")])
    assert (lifespan(plan)["firstReady"], plan.end) == (timestamp(NOW), NOW + HOUR)


@pytest.mark.parametrize("requested", [NOW + HOUR, NOW + HOUR * 2, NOW - HOUR / 2])
def test_first_ready_is_when_the_default_restarted_if_only_its_end_was_written(requested: datetime) -> None:
    begun = {"lifespan": {"start": timestamp(NOW - HOUR), "end": timestamp(NOW)}}
    held = {**holding(default="1h", end=timestamp(requested)), "status": {"ready": True, "healthy": True}}
    later = NOW + timedelta(seconds=7)
    plan = bound(long(begun, timestamp(requested)), held, maps(), states=[state(ready="yes")], now=later)
    assert (plan.end, plan.requested_end) == (requested, "")
    assert lifespan(plan)["firstReady"] == timestamp(NOW if requested == NOW + HOUR else later)


def test_the_default_restarts_although_the_claim_is_not_accepted() -> None:
    held = holding(default="1h", end=timestamp(NOW + HOUR / 2))
    plan = bound(long(BEGUN), held, maps(), states=[state(ready="yes")], push=False)
    assert (plan.end, plan.requested_end) == (NOW + HOUR, timestamp(NOW + HOUR))


@pytest.mark.parametrize(
    ("requested", "terms"),
    [
        ("", {"default": "1h"}),
        ("2026-11-21T12:00:00Z", {"default": "1h"}),  # start + default
        ("2026-11-21T20:00:00Z", {"default": "30m", "maximum": "1h"}),  # cut, counted from the start
    ],
    ids=["by default", "the wish is the default", "the maximum"],
)
def test_a_handle_that_is_ready_only_after_its_end_has_ended(requested: str, terms: Any) -> None:
    held = holding(end=timestamp(NOW), **terms)
    plan = bound(long(BEGUN, requested), held, maps(), states=[state(ready="yes")])
    assert (plan.end, plan.requested_end) == (NOW, "")


def test_a_later_requested_end_counts_although_the_former_end_has_passed() -> None:
    held = holding(end=timestamp(NOW), default="30m")
    plan = bound(long(BEGUN, "2026-11-21T20:00:00Z"), held, maps(), states=[state(ready="yes")])
    assert timestamp(plan.end or NOW) == "2026-11-21T20:00:00Z"


def test_a_past_end_that_a_person_gives_the_handle_ends_it() -> None:
    live = Live(long(), holding(default="2h", end=timestamp(NOW + HOUR)), maps(), states=[state(ready="yes")])
    live.look()
    live.look()
    assert live.claim["spec"]["lifespan"]["end"] == timestamp(NOW + 2 * HOUR)
    settled, given = live.handle, timestamp(NOW - HOUR)
    live.handle = {**settled, "spec": {**settled["spec"], "lifespan": {"default": "2h", "end": given}}}
    assert live.look().end == NOW - HOUR
    live.claim["spec"] = {**live.claim["spec"], "lifespan": {"end": timestamp(NOW + 3 * HOUR)}}
    assert live.look().end == NOW + 3 * HOUR


def test_a_past_end_that_a_person_gives_right_away_is_known_by_what_the_claim_shows() -> None:
    live = Live(long(), holding(default="2h", end=timestamp(NOW + HOUR)), maps(), states=[state(ready="yes")])
    live.look()
    live.look()
    live.honoured = None  # its workflow is not open yet
    settled, given = live.handle, timestamp(NOW - HOUR)
    live.handle = {**settled, "spec": {**settled["spec"], "lifespan": {"default": "2h", "end": given}}}
    assert live.look().end == NOW - HOUR


@pytest.mark.parametrize("rolling", ["1d", "2h"])
def test_a_past_end_that_a_person_gives_the_handle_ends_it_also_where_ends_roll(rolling: str) -> None:
    terms = {"default": "10h", "relativeMaximum": rolling}
    live = Live(long(), holding(**terms, end=timestamp(NOW + HOUR)), maps(), states=[state(ready="yes")])
    live.look()
    live.look()
    settled = live.handle
    live.handle = {**settled, "spec": {**settled["spec"], "lifespan": {**terms, "end": timestamp(NOW - HOUR)}}}
    assert live.look().end == NOW - HOUR


def test_an_end_that_has_passed_in_an_outage_is_not_taken_for_a_persons() -> None:
    begun, mood = (
        long(BEGUN, timestamp(NOW + 9 * HOUR)),
        "{{ resource_claim.annotations.mood == 'fine' and '3h' or '4h' }}",
    )
    live = Live(begun, holding(maximum=mood), maps(), states=[state()])
    assert live.look().end == NOW + 2 * HOUR
    live.claim["metadata"] = {**live.claim["metadata"], "annotations": {"mood": "better"}}
    assert live.look(NOW + 2 * HOUR).end == NOW + 3 * HOUR


def test_a_rolling_end_that_has_passed_in_an_outage_goes_on_whatever_the_claim_shows() -> None:
    live = Live(long(BEGUN, timestamp(NOW + 90 * HOUR)), holding(relativeMaximum="2h"), maps(), states=[state()])
    live.look()
    shown = live.claim["status"]
    live.claim["status"] = {**shown, "lifespan": {**shown["lifespan"], "end": timestamp(NOW + HOUR)}}
    assert live.look(NOW + 5 * HOUR).end == NOW + 7 * HOUR


def test_a_claim_that_may_not_be_written_keeps_its_handle_ending_when_it_says() -> None:
    live = Live(long(BEGUN), holding(default="1h", end=timestamp(NOW + HOUR)), maps(), states=[state(ready="yes")])
    stored = live.claim
    for minutes in (5, 10, 15):
        plan = live.look(NOW + timedelta(minutes=minutes), push=False, shown=False)
        live.claim = stored  # as it may not be written
        assert (plan.end, plan.requested_end) == (NOW + HOUR, "")


def test_a_handle_that_was_ready_when_it_was_taken_is_ready_from_the_start() -> None:
    held = holding(default="1h", end=timestamp(NOW + HOUR))
    held["status"] = {"ready": True, "healthy": True}
    plan = bound(long(), held, maps(), states=[state(ready="yes")])
    times = {"start": timestamp(NOW), "firstReady": timestamp(NOW), "end": timestamp(NOW + HOUR)}
    assert (lifespan(plan), plan.requested_end, plan.wish) == (times, "", None)


def test_times_that_people_have_spoilt_are_recorded_again_once() -> None:
    user_claim = long({"lifespan": {"start": "yesterday", "firstReady": "noon"}})
    live = Live(user_claim, holding(default="1h"), maps(), states=[state(ready="yes")])
    live.look()
    assert live.claim["status"]["lifespan"]["firstReady"] == timestamp(NOW)
    assert live.look(NOW + HOUR / 2).end == NOW + HOUR


def test_an_unreadable_wish_is_not_overwritten_by_the_default() -> None:
    held = holding(default="1h", end=timestamp(NOW + HOUR / 2))
    plan = bound(long(BEGUN, "tomorrow"), held, maps(), states=[state(ready="yes")])
    assert (plan.end, plan.requested_end) == (NOW + HOUR / 2, "")
    assert lifespan(plan)["firstReady"] == timestamp(NOW)


# The claim's status


def test_a_claim_shows_its_handle_its_resources_and_their_objects() -> None:
    base = maps(statusSummaryTemplate={"count": "{{ resources | length | int }}"})
    live = Live(long({"diffBase": "{}"}), holding(), base, states=[state(ready="yes")])
    live.look()
    recorded = {"apiVersion": "v1", "kind": "ConfigMap", "name": "guid0-b7k2q"}
    shown = {"provider": reference("base"), "healthy": True, "ready": True, "reference": recorded}
    assert live.claim["status"] == {
        "diffBase": "{}",
        "resourceHandle": link("ResourceHandle", "poolboy", "guid-b7k2q"),
        "lifespan": {"start": timestamp(NOW), "firstReady": timestamp(NOW)},
        "healthy": True,
        "ready": True,
        "summary": {"count": 1},
        "resources": [{**shown, "state": live.states[0]}],
    }


@pytest.mark.parametrize(
    "before",
    [
        {},
        {"resourceHandle": {}},
        {"resourceHandle": {"name": "guid-gone", "detached": False}},
        {"resourceHandle": {"name": "guid-b7k2q"}},
        {"resourceHandle": {**link("ResourceHandle", "x", "guid-b7k2q"), "apiVersion": "poolboy.dev.local/v1"}},
    ],
    ids=["blanked", "emptied", "another", "name only", "of another domain"],
)
def test_the_reference_to_the_handle_is_repaired(before: Any) -> None:
    plan = bound(long({**BEGUN, **before}), holding(), maps())
    assert plan.claim_status is not None
    assert plan.claim_status["resourceHandle"] == link("ResourceHandle", "poolboy", "guid-b7k2q")
    assert lifespan(plan) == BEGUN["lifespan"]


def test_a_free_handle_has_no_claim_to_write() -> None:
    assert ask(handle(entry("base"), **POOLED), maps()).claim_status is None


def test_a_free_handle_ends_when_it_says() -> None:
    plan = ask(handle(entry("base"), lifespan={"end": timestamp(NOW + HOUR)}, **POOLED), maps())
    assert (plan.end, plan.spec["lifespan"]) == (NOW + HOUR, {"end": timestamp(NOW + HOUR)})
    assert ask(handle(entry("base")), maps()).end is None


# What a pass writes, as its own templates see it

AGAIN = timestamp(NOW + 6 * HOUR)


def test_a_summary_is_of_the_readiness_that_is_shown_beside_it() -> None:
    word = "{{ 'ready' if resource_handle.is_ready else 'pending' }}"
    live = Live(long(), holding(), maps(statusSummaryTemplate={"s": word}))
    live.look()
    assert (live.claim["status"].get("ready"), live.claim["status"]["summary"]) == (False, {"s": "pending"})
    live.states = [{**live.states[0], **READY}]
    live.look()
    for each in (live.handle, live.claim):
        assert (each["status"]["ready"], each["status"]["summary"]) == (True, {"s": "ready"})


@pytest.mark.parametrize(
    "text",
    [
        "{{ resource_claim.lifespan_end_timestamp }}",
        "{{ resource_claim.status.lifespan.end }}",
        "{{ resource_handle.spec.lifespan.end }}",
        "{% set it = resource_handle %}{{ it.lifespan_end_timestamp }}",
    ],
)
@pytest.mark.parametrize("part", ["override", "definition"])
def test_an_end_reaches_the_live_object_in_the_pass_that_settles_it(part: str, text: str) -> None:
    made = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"until": text}}
    message = (
        {"override": made, "template": {"enable": True}} if part == "override" else {"template": {"definition": made}}
    )
    base = provider(**message, updateFilters=[{"pathMatch": "/data/.*"}])
    held = handle(entry("base"), provider={"name": "base"}, lifespan={"end": timestamp(NOW + 4 * HOUR)}, **BOUND)
    status = {**BEGUN, "provider": {"name": "base", "parameterValues": {}}}
    live = Live(claim(status, provider={"name": "base"}), held, base)
    live.look()
    assert live.states[0]["data"]["until"] == timestamp(NOW + 4 * HOUR)
    live.claim["spec"] = {**live.claim["spec"], "lifespan": {"end": AGAIN}}
    plan = live.look()
    assert plan.faults == ()
    assert (live.states[0]["data"]["until"], lifespan(plan)["end"]) == (AGAIN, AGAIN)


@pytest.mark.parametrize(
    ("summary", "at_first", "later"),
    [
        ("{{ resource_claim.metadata.name }} {{ resource_handle.name }} {{ resource_handle.guid }}", 1, 1),
        ("{{ resources | length }}", 1, 1),
        ("{{ resource_handle.is_ready }}", 2, 1),
        ("{{ 'b' if resource_handle.status.summary.s == 'a' else 'a' }}", 2, 2),
    ],
    ids=["what no pass writes", "nothing of them", "readiness", "another each time"],
)
def test_only_what_reads_what_the_pass_writes_is_rendered_again_and_not_for_ever(
    summary: str, at_first: int, later: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Resources] = []
    monkeypatch.setattr(handle_evaluation, "definitions", lambda seen: made.append(seen) or definitions(seen))
    base = maps(statusSummaryTemplate={"s": summary})
    live = Live(long(), holding(), base, states=[state(ready="yes")])
    bound(live.claim, live.handle, base, states=live.states)
    assert len(made) == at_first
    live.look()
    made.clear()
    live.look()
    assert len(made) == later


# autoDelete and autoDetach


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("status.ready", True),  # of this pass, not of the one before
        ("not status.healthy", False),
        ("resource_handle.is_ready and resource_claim.status.ready", True),
        ("metadata.name == 'mine' and spec.resources | length == 1", True),
        ("resource_provider is none", True),
        ("hv == 1", True),
        ("resource_claim.lifespan_start_timestamp == '2026-11-21T12:00:00Z'", True),
        ("", False),
    ],
)
@pytest.mark.parametrize("field", ["autoDelete", "autoDetach"])
def test_the_authors_conditions_are_judged_on_the_new_statuses(field: str, expression: str, holds: bool) -> None:
    user_claim = long(**when(field, expression))
    held = handle(entry("base"), vars={"hv": 1}, status={"ready": False}, **BOUND)
    plan = bound(user_claim, held, maps(), states=[state(ready="yes")])
    expected = (holds and field == "autoDelete", holds and field == "autoDetach")
    assert (plan.auto_delete, plan.auto_detach) == expected
    assert plan.faults == ()


def test_in_provider_mode_the_provider_and_its_variables_are_seen() -> None:
    user_claim = asking({}, accepted={})
    user_claim["spec"]["autoDelete"] = {"when": "v == 1 and resource_provider.name == 'base'"}
    held = handle(entry("base", "base"), provider={"name": "base"}, **BOUND)
    assert bound(user_claim, held, maps(vars={"v": 1})).auto_delete


LIMITS: dict[str, Any] = {"lifespan": {"maximum": "{{ longest }}"}, **BOUND}


@pytest.mark.parametrize(
    ("held", "vars_of", "shown"),
    [
        (handle(entry("a"), entry("b"), **LIMITS), {"a": {"longest": "3h"}}, "3h"),
        (handle(entry("a"), entry("b"), **LIMITS), {"a": {"longest": "3h"}, "b": {"longest": "5h"}}, "5h"),
        (handle(entry("a"), entry("b"), vars={"longest": "7h"}, **LIMITS), {"b": {"longest": "5h"}}, "7h"),
        (handle(entry("b"), entry("a"), provider={"name": "a"}, **LIMITS), {"a": {"longest": "3h"}}, "3h"),
        (handle(entry("a"), provider={"name": "a"}, **LIMITS), {"a": {"longest": "{{ 60 * 2 }}m"}}, "120m"),
    ],
)
def test_lifespan_templates_of_a_handle_see_the_vars_of_its_providers(held: Any, vars_of: Any, shown: str) -> None:
    """They were rendered with these at the creation; since Poolboy 1.13 no handle has a copy of them."""
    providers = [maps(name, vars=vars_of.get(name, {})) for name in ("a", "b")]
    user_claim = claim({"resourceHandle": {"name": "guid-b7k2q"}}, provider={"name": "a"})
    plan = bound(user_claim, held, *providers, push=False, newer=True)
    assert (plan.faults, lifespan(plan)["maximum"]) == ((), shown)


def test_conditions_of_a_listed_claim_see_the_vars_of_its_providers() -> None:
    user_claim = claim({}, resources=[entry("base")], autoDelete={"when": "v == 1"})
    assert bound(user_claim, handle(entry("base"), **BOUND), maps(vars={"v": 1})).auto_delete
    assert not bound(user_claim, handle(entry("base"), vars={"v": 2}, **BOUND), maps(vars={"v": 1})).auto_delete


@pytest.mark.parametrize("missing", ["link", "base"])
def test_no_condition_is_evaluated_while_its_provider_is_missing(missing: str) -> None:
    base = maps(linkedResourceProviders=[{"name": "link"}])
    providers = {"base": base, "link": maps("link", override={"apiVersion": "v1", "kind": "Secret"})}
    values = {"provider": {"name": "base", "parameterValues": {}}}
    user_claim = claim(values, provider={"name": "base"}, **when("autoDelete", "not status.ready | default(false)"))
    live = Live(user_claim, handle(provider={"name": "base"}, **BOUND), *providers.values())
    assert live.look().auto_delete
    live.states = [{**each, **READY} for each in live.states]
    plan = live.look()
    assert (plan.handle_status["ready"], plan.auto_delete) == (True, False)
    live.providers = tuple(each for name, each in providers.items() if name != missing)
    plan = live.look()
    assert [fault.reason for fault in plan.faults]
    assert (plan.handle_status["ready"], plan.auto_delete) == (True, False)


def test_a_forbidden_resource_is_shown_as_it_was() -> None:
    live = Live(claim(), handle(entry("base"), **BOUND), maps(), states=[state(ready="yes")])
    live.look()
    shown = live.look().claim_status
    assert shown
    live.states = [None]
    plan = bound(live.claim, live.handle, maps(), states=[None], unreadable=(0,))
    assert plan.claim_status == shown
    assert plan.handle_status == live.handle["status"]
    absent = bound(live.claim, live.handle, maps(), states=[None]).claim_status or {}
    assert absent["ready"] is False


def test_a_lifespan_that_reads_the_passs_own_writes_is_settled_again_once() -> None:
    mood = "{{ '4h' if resource_claim.status.ready | default(false) else '2h' }}"
    live = Live(long(BEGUN, timestamp(NOW + 9 * HOUR)), holding(maximum=mood), maps(), states=[state(ready="yes")])
    first = live.look()
    assert (first.end, first.look_at) == (NOW + 2 * HOUR, NOW + handle_evaluation.SOON)
    second = live.look(NOW + handle_evaluation.SOON)
    assert (second.end, second.look_at, second.by_clock) == (NOW + 4 * HOUR, None, False)
    live.states = [{**live.states[0], "data": {"ready": "yes", "beat": "1"}}]
    assert live.look(NOW + 2 * handle_evaluation.SOON).look_at is None, (
        "it comes to the same by what a heartbeat changes"
    )


def test_a_plan_without_a_write_causes_no_further_observation() -> None:
    mood = "{{ '4h' if resource_claim.status.ready | default(false) else '2h' }}"
    user_claim, held = long(BEGUN, timestamp(NOW + 9 * HOUR)), holding(maximum=mood)
    assert bound(user_claim, held, maps(), states=[state(ready="yes")]).look_at
    assert bound(user_claim, held, maps(), states=[state(ready="yes")], shown=False).look_at is None
    free = handle(entry("base"), lifespan={"maximum": "{{ resource_handle.status.ready }}"})
    assert ask(free, maps(), states=[state(ready="yes")]).look_at is None


def test_references_are_written_in_the_domain_that_is_served() -> None:
    foreign = {
        "apiVersion": "poolboy.dev.local/v1",
        "kind": "ResourceProvider",
        "name": "base",
        "namespace": "elsewhere",
    }
    live = Live(claim(), handle({"provider": foreign}, {"provider": {"name": "other"}}, **BOUND), maps(), maps("other"))
    live.look()
    assert [each["provider"] for each in live.handle["spec"]["resources"]] == [reference("base"), {"name": "other"}]
    assert live.claim["status"]["resources"][0]["provider"] == reference("base")


@pytest.mark.parametrize("field", ["autoDelete", "autoDetach"])
def test_a_condition_that_fails_is_false_and_reported(field: str) -> None:
    plan = bound(long(**when(field, "1 // 0")), holding(), maps(), states=[state()])
    assert (plan.auto_delete, plan.auto_detach) == (False, False)
    assert f"ResourceClaim mine, spec.{field}.when: " in stalled(plan.claim_status)[0][1]


def test_a_condition_error_with_half_a_character_reaches_the_worker() -> None:
    user_claim = long(**when("autoDelete", "1 | json_query('\\ud800')"))
    plan = bound(user_claim, holding(end=timestamp(NOW)), maps(), states=[state()])
    assert HandlePlan.model_validate_json(plan.model_dump_json()) == plan
    assert (plan.end, len(plan.faults)) == (NOW, 1)


# By the clock


@pytest.mark.parametrize(
    ("spec", "newer", "by_clock"),
    [
        ({}, False, False),
        ({"override": {"kind": "ConfigMap", "apiVersion": "v1", "data": {"t": "{{ now() }}"}}}, False, False),
        (
            {"override": {"kind": "A", "apiVersion": "v1", "t": "{{ now() }}"}, "template": {"enable": True}},
            False,
            True,
        ),
        ({"template": {"definition": {"data": {"t": "{{ timestamp }}"}}}}, False, True),
        ({"healthCheck": "timestamp(metadata.creationTimestamp).add('1h') < timestamp.utcnow"}, False, True),
        ({"readinessCheck": "data.x | random"}, False, True),
        ({"statusSummaryTemplate": {"a": "{{ datetime.utcnow() }}"}}, False, True),
        ({"lifespan": {"maximum": "{{ now() }}"}}, False, True),
        ({"linkedResourceProviders": [{"name": "other", "when": "now()"}]}, False, True),
        ({"linkedResourceProviders": [{"name": "other", "waitFor": "now()"}]}, False, True),
        ({"linkedResourceProviders": [{"name": "timed", "when": "false"}]}, False, True),
        ({"vars": {"v": "{{ now() }}"}}, False, False),
        ({"vars": {"v": "{{ now() }}"}}, True, True),
        ({"parameters": [{"name": "p", "default": {"template": "{{ now() }}"}}]}, False, False),
    ],
)
def test_a_value_that_may_change_by_itself_is_observed_by_the_clock(spec: Any, newer: bool, by_clock: bool) -> None:
    timed = maps("timed", statusSummaryTemplate={"t": "{{ now() }}"})
    held = handle(entry("base"), provider={"name": "base"})
    assert ask(held, maps(**spec), maps("other"), timed, newer=newer).by_clock is by_clock


@pytest.mark.parametrize("field", ["autoDelete", "autoDetach"])
def test_the_claims_conditions_may_depend_on_the_clock(field: str) -> None:
    timed = when(field, "resource_claim.lifespan_start_datetime < now(utc=True)")
    assert bound(long(BEGUN, **timed), holding(), maps()).by_clock
    assert not bound(long(BEGUN, **when(field, "status.ready")), holding(), maps()).by_clock
    assert bound(long(BEGUN), holding(maximum="{{ now() and '1h' }}"), maps()).by_clock


# Once it is done, nothing changes


BUSY = maps(
    "busy",
    template={"enable": True, "definition": {"data": {"n": "{{ n }}"}}},
    override={
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "data": {"guid": "{{ guid }}", "refs": "{{ resource_references | to_json }}", "ready": "yes"},
    },
    updateFilters=[{"pathMatch": "/data/.*"}],
    statusSummaryTemplate={"n": "{{ n | int }}"},
    linkedResourceProviders=[{"name": "base", "waitFor": "linked_resource_state.metadata.name != ''"}],
)


@pytest.mark.parametrize(
    ("user_claim", "held"),
    [
        (None, handle(entry("base", "a"), entry("base", "b"), **POOLED)),
        (None, handle(provider={"name": "busy", "parameterValues": {"n": 1}}, **POOLED)),
        (None, handle(provider={"name": "gone"})),
        (asking({"n": 1}, accepted={"n": 2}, name="busy"), handle(**BOUND)),
        (
            asking({"n": 1}, accepted={"n": 2}, name="busy"),
            handle(lifespan={"default": "1h", "maximum": "2h"}, **BOUND),
        ),
        (long(end="2027-01-01T00:00:00Z"), holding(relativeMaximum="1h", maximum="1d")),
        (long({"healthy": True, "kopf": {}}, autoDelete={"when": "1 // 0"}), holding(default="soon")),
        (claim(resources=[entry("base"), entry("busy", template=READY)]), handle(entry("busy", "x"), **BOUND)),
    ],
)
def test_asked_again_a_plan_that_was_done_changes_nothing(user_claim: Any, held: Any) -> None:
    live = Live(user_claim, held, maps(), BUSY)
    first = live.look()
    claim_before, handle_before, states_before = copy.deepcopy((live.claim, live.handle, live.states))
    again = live.look(NOW + timedelta(seconds=30))
    assert (live.claim, live.handle, live.states) == (claim_before, handle_before, states_before)
    assert again.model_copy(update={"end_was_cut": first.end_was_cut, "requested_end": first.requested_end}) == first


def test_a_handle_that_is_not_made_yet_is_completed() -> None:
    born = {
        "apiVersion": f"{NAMES.domain}/v1",
        "kind": "ResourceHandle",
        "spec": {"provider": {"name": "busy"}, **BOUND},
    }
    born["metadata"] = {"name": "guid-b7k2q", "generateName": "guid-", "labels": {NAMES.claim_name_key: "mine"}}
    plan = bound(asking({"n": 1}, accepted={"n": 1}, name="busy"), born, maps(), BUSY)
    assert [each["name"] for each in entries(plan)] == ["base", "busy"]
    assert plan.spec["provider"] == {"name": "busy", "parameterValues": {"n": 1}}


@pytest.mark.parametrize("text", ["uid", "metadata.uid", "creation_timestamp"])
def test_a_name_that_the_handle_gives_only_once_it_is_made_is_not_recorded_before(text: str) -> None:
    named = config_map(f"box-{{{{ resource_handle.{text} }}}}")
    boxes = maps(override=named, template={"enable": True})
    held = holding()
    held["metadata"] = {**held["metadata"], "creationTimestamp": "then"}
    born = {**held, "metadata": {"name": "guid-b7k2q", "generateName": "guid-", "namespace": "poolboy"}}
    assert "reference" not in entries(bound(long(), born, boxes))[0]
    uid = "then" if "creation" in text else "handle-uid"
    assert entries(bound(long(), held, boxes))[0]["reference"]["name"] == f"box-{uid}"


def test_the_claim_is_named_on_what_is_made() -> None:
    plan = bound(long(), holding(), maps())
    annotations = plan.creations[0][1]["metadata"]["annotations"]  # type: ignore[index, call-overload]
    assert annotations[NAMES.claim_name_key] == "mine"  # type: ignore[index, call-overload]


def test_templates_are_only_data() -> None:
    held = handle(entry("base", template=config_map(x="{{ 1 + 1 }}")))
    assert ask(held, maps()).creations[0][1]["data"] == {"x": "{{ 1 + 1 }}"}
