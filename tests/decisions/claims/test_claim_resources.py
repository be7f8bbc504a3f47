"""The models and definitions of the claims area, held against what clients of Poolboy see of its definitions.

The tables here are written from the replaced operator's public schemas, not from the models. In a sketch `!` marks
required fields, `*` schemas that preserve unknown fields, and brackets what else the schema asks.
"""

from __future__ import annotations

import pytest
import typer
from definitions import CRDS, MODELS, Json, columns_of, everything_in, samples, schema_of, sketch, version_of

from domain.claims import KINDS, RESOURCE_POOL
from domain.claims.resources import ResourceClaim, ResourceHandle, ResourcePool, ResourceProvider
from domain.claims.resources.shared import ApprovalState, WaitingFor
from domain.custom_resources import all_crds, custom_resources
from domain.operator_domain import DEFAULT, PLACEHOLDER
from domain.reading import Malformed, read, read_all
from starters.cli.object_reference import target
from starters.cli.wake_lifecycles import kinds_with_objects

OBJECTS = samples("claims")

WHEN = "{when: string}"
REFERENCE = "{apiVersion: string, kind: string, name: string, namespace: string}"
NAMED = REFERENCE.replace("name:", "name!:", 1)
LINK = "{apiVersion!: string, kind!: string, name!: string, namespace!: string}"
RESOURCE = "{apiVersion!: string, kind!: string, name!: string, namespace: string}"
CHOICE = "{name!: string, parameterValues: *}"
SPAN = "string[^[0-9]+[smhd]$]"
LABELS = "map<string[^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$]>"
WAITING = "string[ResourceClaim|Linked ResourceProvider|Resource Definition]"
FREE_SPANS = "default: string, {}maximum: string, relativeMaximum: string"
CHECKS = "{checks: list<{check!: string, name!: string}>, openAPIV3Schema: *}"
LEFT = "diffBase: string, {}kopf: *, "

SPECS = {
    "ResourceClaim": (
        f"{{autoDelete: {WHEN}, autoDetach: {WHEN}, disableCreation: boolean, "
        f"lifespan: {{end: date-time, start: date-time}}, provider: {CHOICE}, "
        f"resources: list<{{name: string, provider: {NAMED}, template: *}}>}}"
    ),
    "ResourceHandle": (
        f"{{lifespan: {{{FREE_SPANS.format('end: date-time, ')}}}, preferenceScore: number, provider: {CHOICE}, "
        f"resourceAnnotations: map<string>, resourceClaim: {LINK}, resourceLabels: {LABELS}, resourcePool: {LINK}, "
        f"resources: list<{{name: string, provider: {LINK}, reference: {RESOURCE}, template: *}}>, vars: *}}"
    ),
    "ResourcePool": (
        f"{{deleteUnhealthyResourceHandles: boolean, lifespan: {{{FREE_SPANS.format('')}, unclaimed: {SPAN}}}, "
        f"maxUnready: integer[>=0], minAvailable: integer[>=0], preferenceScore: number, provider: {CHOICE}, "
        f"resourceAnnotations: map<string>, resourceLabels: {LABELS}, "
        f"resources: list<{{name: string, provider: {LINK}, template: *}}>, vars: *}}"
    ),
    "ResourcePoolScaling": "{at: date-time, count!: integer[>=0], resourcePool!: {name!: string}}",
    "ResourceProvider": (
        f"{{approval: {{pendingMessage: string, required: boolean}}, default: *, disableCreation: boolean, "
        f"healthCheck: string, lifespan: {{{FREE_SPANS.format('')}, unclaimed: {SPAN}}}, "
        "linkedResourceProviders: list<{name!: string, parameterValues: *, resourceName: string, "
        "templateVars: list<{from!: string, name!: string}>, waitFor: string, when: string}>, match: *, "
        "matchIgnore: list<string>, override: *, "
        "parameters: list<{allowUpdate: boolean, default: {template: string, value: any}*, name: string, "
        f"required: boolean, validation: {CHECKS}}}>, readinessCheck: string, "
        "resourceClaimAnnotations: map<string>, resourceClaimLabels: map<string>, resourceName: string, "
        "resourceRequiresClaim: boolean, statusSummaryTemplate: *, "
        "template: {definition: *, enable: boolean, style: string[jinja2]}, "
        f"updateFilters: list<{{allowedOps: list<string>, pathMatch!: string}}>, validation: {CHECKS}, vars: *}}"
    ),
    "ResourceWatch": ("{apiVersion!: string, kind!: string, namespace: string, refreshInterval: string[^\\d+[ms]$]}"),
}
STATUSES = {
    "ResourceClaim": (
        "{approval: {message: string, state!: string[approved|pending|rejected]}, "
        f"{LEFT.format('healthy: boolean, ')}"
        f"lifespan: {{end: date-time, firstReady: date-time, maximum: {SPAN}, relativeMaximum: {SPAN}, "
        "start: date-time}, "
        "provider: {name!: string, parameterValues: *, validationErrors: list<string>}, ready: boolean, "
        "resourceHandle: {apiVersion: string, detached: boolean, kind: string, name: string, namespace: string}, "
        f"resources: list<{{healthy: boolean, name: string, provider: {REFERENCE}, ready: boolean, "
        f"reference: {RESOURCE}, state: *, validationError: string, waitingFor: {WAITING}}}>, summary: *}}*"
    ),
    "ResourceHandle": (
        f"{{{LEFT.format('healthy: boolean, ')}ready: boolean, "
        f"resources: list<{{healthy: boolean, name: string, ready: boolean, reference: {RESOURCE}, "
        f"waitingFor: {WAITING}}}>, summary: *}}*"
    ),
    "ResourcePool": (
        f"{{{LEFT.format('')}resourceHandleCount: {{available: integer, ready: integer}}, "
        "resourceHandles: list<{healthy: boolean, name: string, ready: boolean}>}*"
    ),
    "ResourceProvider": (  # Perdure's addition
        "{conditions: list<{lastProbeTime: date-time, lastTransitionTime: date-time, message: string, reason: string, "
        "status: string, type: string}>}"
    ),
    "ResourcePoolScaling": f"{{count: integer, {LEFT.format('')}state: string[waiting|scaling|done]}}*",
    "ResourceWatch": f"{{{LEFT.format('')}pod: {{name: string}}}}*",
}
COLUMNS = {
    "ResourceClaim": (
        "Handle string .status.resourceHandle.name; Provider string .spec.provider.name; "
        "Healthy boolean .status.healthy; Ready boolean .status.ready; Age date .metadata.creationTimestamp; "
        "Approval string .status.approval.state; "
        'Stalled string .status.conditions[?(@.type=="Stalled")].reason'
    ),
    "ResourceHandle": (
        "Provider string .spec.provider.name; Pool string .spec.resourcePool.name; "
        "Healthy boolean .status.healthy; Ready boolean .status.ready; "
        "Claim Namespace string .spec.resourceClaim.namespace; Claim Name string .spec.resourceClaim.name; "
        "Age date .metadata.creationTimestamp"
    ),
    "ResourcePool": (
        "ResourceProvider string .spec.provider.name; Min integer .spec.minAvailable; "
        "Available integer .status.resourceHandleCount.available; Ready integer .status.resourceHandleCount.ready; "
        "Age date .metadata.creationTimestamp"
    ),
    "ResourcePoolScaling": (
        "Pool string .spec.resourcePool.name; At string .spec.at; Count integer .spec.count; "
        "Created integer .status.count; State string .status.state"
    ),
    "ResourceProvider": (
        "Api Version string .spec.override.apiVersion; Kind string .spec.override.kind; "
        "Age date .metadata.creationTimestamp"
    ),
    "ResourceWatch": (
        "Watch Namespace string .spec.namespace; Api Version string .spec.apiVersion; Kind string .spec.kind"
    ),
}
ANY_NAME = {"type": "string", "maxLength": 63, "pattern": r"^[a-z0-9A-Z]([a-z0-9A-Z\-._]*[a-z0-9A-Z])?$"}
NAMES = {
    **dict.fromkeys(("ResourceClaim", "ResourcePool", "ResourcePoolScaling", "ResourceProvider"), ANY_NAME),
    "ResourceHandle": {**ANY_NAME, "pattern": r"^guid-[a-z0-9\-]*[a-z0-9]$"},
    "ResourceWatch": None,
}
PLURALS = {kind: "resourcewatches" if kind == "ResourceWatch" else f"{kind.lower()}s" for kind in SPECS}
KINDS_BY_NAME = sorted(SPECS)


@pytest.mark.parametrize("kind", KINDS_BY_NAME)
def test_the_spec_of_a_claim_kind_has_the_fields_clients_know(kind: str) -> None:
    assert sketch(schema_of(kind)["properties"]["spec"]) == SPECS[kind]


@pytest.mark.parametrize("kind", KINDS_BY_NAME)
def test_the_status_of_a_claim_kind_has_the_fields_clients_know(kind: str) -> None:
    status = schema_of(kind)["properties"].get("status")
    assert (sketch(status) if status else None) == STATUSES.get(kind)


@pytest.mark.parametrize("kind", KINDS_BY_NAME)
def test_kubectl_get_shows_the_known_columns_of_claim_kinds(kind: str) -> None:
    assert columns_of(kind) == COLUMNS[kind]


@pytest.mark.parametrize("kind", KINDS_BY_NAME)
def test_a_claim_kind_is_served_under_its_known_names_only(kind: str) -> None:
    crd, version = CRDS[kind], version_of(kind)
    assert crd["metadata"] == {"name": f"{PLURALS[kind]}.poolboy.gpte.redhat.com"}
    assert crd["spec"]["names"] == {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": PLURALS[kind],
        "singular": kind.lower(),
    }
    assert (crd["spec"]["group"], crd["spec"]["scope"]) == ("poolboy.gpte.redhat.com", "Namespaced")
    assert set(crd["spec"]) == {"group", "names", "scope", "versions"}
    assert (version["name"], version["served"], version["storage"]) == ("v1", True, True)


@pytest.mark.parametrize("kind", KINDS_BY_NAME)
def test_the_status_is_written_by_itself_except_of_providers_and_watches(kind: str) -> None:
    served = version_of(kind).get("subresources")
    assert served == (None if kind in ("ResourceProvider", "ResourceWatch") else {"status": {}})


@pytest.mark.parametrize("kind", KINDS_BY_NAME)
def test_names_are_held_to_their_pattern(kind: str) -> None:
    assert schema_of(kind)["properties"]["metadata"].get("properties", {}).get("name") == NAMES[kind]


@pytest.mark.parametrize("kind", KINDS_BY_NAME)
def test_the_schema_has_no_defaults_and_asks_for_the_four_fields_of_every_object(kind: str) -> None:
    schema = schema_of(kind)
    assert schema["required"] == ["apiVersion", "kind", "metadata", "spec"]
    for name in ("spec", "status"):
        for item in everything_in(schema["properties"].get(name)):
            # A property may itself be called default; a schema never has one.
            assert "default" not in item or "type" not in item or isinstance(item["type"], dict)


def test_only_watches_have_selectable_fields_and_old_servers_get_none() -> None:
    paths = [{"jsonPath": f".spec.{name}"} for name in ("apiVersion", "kind", "namespace")]
    assert version_of("ResourceWatch")["selectableFields"] == paths
    assert [kind for kind in CRDS if "selectableFields" in version_of(kind)] == ["ResourceWatch"]
    for crd in all_crds(DEFAULT, selectable_fields=False):
        assert "selectableFields" not in str(crd)


def test_every_kind_of_the_claims_area_has_a_definition() -> None:
    ours = [model.kind_of for model in custom_resources() if model.kind_of.area == "claims"]
    dumped = [kind for kind in KINDS if kind.plural]
    assert ours == dumped
    assert {kind.name for kind in dumped} == set(SPECS)


def test_only_claims_handles_and_pools_carry_the_finalizer() -> None:
    carrying = {kind.name: kind.finalizer for kind in KINDS if kind.finalizer}
    assert carrying == dict.fromkeys(("ResourceClaim", "ResourceHandle", "ResourcePool"), PLACEHOLDER)


def test_providers_scalings_and_watches_have_no_lifecycle_to_wake_or_ask() -> None:
    without = {"ResourceProvider", "ResourcePoolScaling", "ResourceWatch"}
    assert {kind.name for kind in KINDS if not kind.lifecycle} == without
    assert {kind.name for kind in kinds_with_objects() if kind in KINDS} == {
        "ResourceClaim",
        "ResourceHandle",
        "ResourcePool",
    }
    with pytest.raises(typer.BadParameter, match="a ResourceProvider has no lifecycle"):
        target("resourceprovider", "poolboy/lab")
    assert target("resourceclaim", "users/lab").kind.name == "ResourceClaim"


# Reading.


@pytest.mark.parametrize("name", sorted(OBJECTS))
def test_objects_of_every_release_come_back_as_they_were(name: str) -> None:
    obj = OBJECTS[name]
    found = read(MODELS[obj["kind"]], obj)
    assert not isinstance(found, Malformed)
    written = found.model_dump(mode="json", exclude_unset=True)
    assert written["spec"] == obj["spec"]
    assert written.get("status") == obj.get("status")


def test_an_absent_field_is_read_as_the_operators_default() -> None:
    provider = ResourceProvider.model_validate({"spec": {"approval": {}, "template": {}, "updateFilters": [{}]}})
    assert provider.spec.approval is not None
    assert provider.spec.approval.pending_message == "Approval pending."
    assert provider.spec.template is not None
    assert (provider.spec.template.style, provider.spec.template.enable) == ("jinja2", False)
    assert provider.spec.update_filters[0].allowed_ops == ("add", "remove", "replace")
    pool = ResourcePool.model_validate({"spec": {}})
    assert (pool.spec.min_available, pool.spec.max_unready) == (0, None)


def test_unknown_is_neither_true_nor_false() -> None:
    claim = ResourceClaim.model_validate({"status": {"healthy": None, "resources": [{"ready": None}]}})
    assert claim.status.healthy is None
    assert claim.status.resources[0].ready is None


def test_nulls_inside_free_form_parts_stay() -> None:
    claim = ResourceClaim.model_validate({"spec": {"provider": {"name": "p", "parameterValues": {"a": None}}}})
    assert claim.spec.provider is not None
    assert claim.spec.provider.parameter_values == {"a": None}


def test_a_field_of_a_newer_release_survives_in_a_list_that_is_written_whole() -> None:
    entry = {"name": "a", "healthy": True, "ofTomorrow": {"kept": [1]}}
    claim = ResourceClaim.model_validate({"status": {"resources": [entry]}})
    changed = claim.status.resources[0].model_copy(update={"ready": True})
    assert changed.model_dump(mode="json", exclude_unset=True) == {**entry, "ready": True}


def test_a_word_of_a_newer_release_is_read_unchanged() -> None:
    claim = ResourceClaim.model_validate(
        {"status": {"approval": {"state": "escalated"}, "resources": [{"waitingFor": "Godot"}]}}
    )
    assert claim.status.approval is not None
    assert claim.status.approval.state == "escalated"
    assert claim.status.resources[0].waiting_for == "Godot"


def test_the_words_are_those_of_the_schema() -> None:
    state = schema_of("ResourceClaim")["properties"]["status"]["properties"]["approval"]["properties"]["state"]
    words = [value for name, value in vars(ApprovalState).items() if name.isupper()]
    assert sorted(state["enum"]) == sorted(words)
    assert set(WaitingFor) == {"ResourceClaim", "Linked ResourceProvider", "Resource Definition"}


def malformed(minimum: object) -> Json:
    metadata = {"name": "bad", "namespace": "poolboy", "uid": "u"}
    return {"metadata": metadata, "spec": {"minAvailable": minimum, "resources": [{"template": 3}]}}


def test_a_malformed_object_is_named_with_each_wrong_field() -> None:
    found = read(ResourcePool, malformed("many"))
    assert isinstance(found, Malformed)
    assert (found.key.kind, found.key.path) == (RESOURCE_POOL.name, "ResourcePool/poolboy/bad")
    problems = dict(problem.split(": ", 1) for problem in found.problem.split("; "))
    assert set(problems) == {"spec.minAvailable", "spec.resources[0].template"}
    assert "integer" in problems["spec.minAvailable"]


def test_an_error_is_reported_without_the_value() -> None:
    assert "s3cret" not in str(read(ResourcePool, malformed("s3cret")))


def test_a_malformed_object_blocks_no_other() -> None:
    good = {"metadata": {"name": "good"}, "spec": {"minAvailable": 1}}
    readable, unreadable = read_all(ResourcePool, [good, malformed("x"), {}, {"metadata": 3}, good])
    assert [pool.metadata.name for pool in readable] == ["good", "", "good"]
    assert [item.key.name for item in unreadable] == ["bad", ""]


# What objects say of themselves.


def test_a_handles_references_are_found_wherever_its_release_has_put_them() -> None:
    older = ResourceHandle.model_validate(OBJECTS["guid-x7k2m"])
    newer = ResourceHandle.model_validate(OBJECTS["guid-demo-base-7"])
    assert [item.name for item in older.references] == ["thing-x7k2m", "lab-x7k2m"]
    assert [item.name for item in newer.references] == ["thing-demo-base-7"]
    assert newer.reference(1) is newer.reference(7) is None


def test_the_status_decides_where_spec_and_status_differ() -> None:
    there = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "labs"}
    handle = ResourceHandle.model_validate(
        {
            "spec": {"resources": [{"reference": {**there, "name": "old"}}]},
            "status": {"resources": [{"reference": {**there, "name": "new"}}]},
        }
    )
    assert [item.name for item in handle.references] == ["new"]


def test_objects_that_abandoning_leaves_behind_are_reported() -> None:
    claim = ResourceClaim.model_validate(OBJECTS["claim-1.12-bound"])
    assert claim.outside[0].startswith("ResourceHandle poolboy/guid-x7k2m")
    assert claim.outside[1] == "ConfigMap labs/thing-x7k2m (v1)"
    handle = ResourceHandle.model_validate(OBJECTS["guid-x7k2m"])
    assert [line.split(" (")[0] for line in handle.outside] == ["ConfigMap labs/thing-x7k2m", "Namespace lab-x7k2m"]
    assert ResourceClaim.model_validate(OBJECTS["claim-new-by-provider"]).outside == ()
