"""A handle as a pool makes it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from claim_domain import NAMES
from claim_scenes import NOW, config_map, entry, handle, link, provider, reference

from domain.claims.evaluator_interface import HandleBody, HandleQuestion, PoolQuestion
from domain.claims.handle_creation import plan_pool_handle, with_end_from_creation
from domain.claims.handle_evaluation import plan_handle
from domain.claims.json_objects import objects_at
from domain.claims.lifespan_end import for_pool_handle
from domain.resource import timestamp


def pool(**spec: Any) -> dict[str, Any]:
    metadata = {"name": "spare", "namespace": "poolboy", "uid": "pool-uid"}
    return {"apiVersion": NAMES.api_version, "kind": "ResourcePool", "metadata": metadata, "spec": spec}


def make(user_claim: dict[str, Any], *providers: dict[str, Any], name: str = "guid-b7k2q") -> HandleBody:
    known = {each["metadata"]["name"]: each for each in providers}
    return plan_pool_handle(PoolQuestion(names=NAMES, now=NOW, providers=known, pool=user_claim, handle_name=name))


SIZES = provider(
    "sizes",
    parameters=[{"name": "size", "default": {"value": 1}}, {"name": "p", "default": {"template": "never"}}],
    override={"apiVersion": "v1", "kind": "ConfigMap"},
    template={"definition": {"data": {"size": "{{ size | int }}", "p": "{{ p | default('none') }}", "v": "{{ v }}"}}},
    vars={"v": "providers"},
    lifespan={"default": "1h", "maximum": "{{ x }}", "relativeMaximum": "3h", "unclaimed": "1d"},
)


def test_a_pools_handle_is_complete_from_birth() -> None:
    body = make(pool(provider={"name": "sizes", "parameterValues": {"size": 3}}, vars={"v": "pools"}), SIZES)
    assert body.fault is None
    assert body.labels == {NAMES.pool_name_key: "spare", NAMES.pool_namespace_key: "poolboy"}
    assert body.spec == {
        "resourcePool": link("ResourcePool", "poolboy", "spare"),
        "provider": {"name": "sizes", "parameterValues": {"size": 3}},
        "vars": {"v": "pools"},
        "resources": [entry("sizes", "sizes", template={"data": {"size": 3, "p": "none", "v": "pools"}})],
        "lifespan": {
            "default": "1h",
            "maximum": "{{ x }}",
            "relativeMaximum": "3h",  # not the maximum's (D4)
            "end": "2026-11-22T12:00:00Z",
        },
    }


def test_a_list_mode_pools_handle_has_its_resources_and_no_other_lifespan() -> None:
    listed = [entry("sizes", "a", template=config_map(x="{{ literal }}"))]
    body = make(pool(resources=listed), SIZES)
    assert body.spec == {"resourcePool": link("ResourcePool", "poolboy", "spare"), "resources": listed}


def test_a_pools_references_are_handed_on_in_the_domain_that_is_served() -> None:
    foreign = {"apiVersion": "poolboy.dev.local/v1", "kind": "ResourceProvider", "name": "sizes", "namespace": "else"}
    body = make(pool(resources=[{"provider": foreign}, {"provider": {"name": "unknown"}}]), SIZES)
    assert body.spec["resources"] == [{"provider": reference("sizes")}, {"provider": {"name": "unknown"}}]


def test_a_pools_settings_of_its_handles_are_passed_on() -> None:
    settings = {"preferenceScore": 5, "resourceLabels": {"a": "b"}, "resourceAnnotations": {"c": "d"}}
    body = make(pool(resources=[entry("sizes")], minAvailable=3, maxUnready=1, **settings))
    assert body.spec == {
        "resourcePool": link("ResourcePool", "poolboy", "spare"),
        "resources": [entry("sizes")],
        **settings,
    }


@pytest.mark.parametrize(
    ("lifespan", "after"),
    [
        ({"unclaimed": "2h"}, {"end": "2026-11-21T14:00:00Z"}),
        ({"default": "{{ d }}", "maximum": "1d", "relativeMaximum": "2d"}, None),
        ({}, {}),
    ],
    ids=["unclaimed", "texts unchanged", "an empty one"],
)
def test_a_pools_own_lifespan_replaces_the_providers(lifespan: Any, after: Any) -> None:
    body = make(pool(provider={"name": "sizes"}, lifespan=lifespan), SIZES)
    assert body.spec.get("lifespan", {}) == (lifespan if after is None else after)


def test_the_end_can_be_counted_again_from_the_moment_of_creation() -> None:
    lifespan = pool(lifespan={"unclaimed": "2h"})["spec"]["lifespan"]
    made = for_pool_handle(lifespan, None, NOW + timedelta(seconds=1))
    assert made == {"end": "2026-11-21T14:00:01Z"}
    created = handle(lifespan={"end": "2026-11-21T14:00:00Z"})
    created["metadata"]["creationTimestamp"] = timestamp(NOW + timedelta(seconds=1))
    assert with_end_from_creation(created, NOW)["spec"] == {"lifespan": made}


def test_an_end_at_the_end_of_the_calendar_stays_if_the_creation_is_late() -> None:
    created = handle(lifespan=for_pool_handle({"unclaimed": "9999999d"}, None, NOW))
    created["metadata"]["creationTimestamp"] = timestamp(NOW + timedelta(seconds=1))
    assert with_end_from_creation(created, NOW) == created


@pytest.mark.parametrize(
    ("user_claim", "reason"),
    [
        (pool(provider={"name": "gone"}), "ProviderMissing"),
        (pool(provider={"name": "linking"}), "ProviderMissing"),
        (pool(provider={"name": "broken"}), "TemplateFailed"),
        (pool(provider={"name": "sizes"}, lifespan={"unclaimed": "soon"}), "DurationUnreadable"),
        (pool(resources=[entry("sizes")], lifespan={"unclaimed": "0s"}), "UnclaimedTooShort"),
        (pool(provider={"name": "hasty"}), "UnclaimedTooShort"),
    ],
)
def test_on_a_fault_no_handle_is_made(user_claim: Any, reason: str) -> None:
    linking = provider("linking", linkedResourceProviders=[{"name": "gone"}])
    broken = provider("broken", template={"definition": {"a": "{{ gone }}"}})
    hasty = provider("hasty", lifespan={"unclaimed": "0h"})
    body = make(user_claim, SIZES, linking, broken, hasty)
    assert body.fault is not None
    assert (body.fault.reason, body.spec, body.labels) == (reason, {}, {})


NAMED = provider("named", template={"definition": {"data": {"guid": "{{ resource_handle.metadata.name[5:] }}"}}})


def test_templates_that_speak_of_the_handle_see_its_name() -> None:
    body = make(pool(provider={"name": "named"}), NAMED)
    assert body.spec["resources"] == [entry("named", "named", template={"data": {"guid": "b7k2q"}})]


def test_while_the_name_is_not_known_they_are_left_to_the_first_pass() -> None:
    body = make(pool(provider={"name": "named"}), NAMED, name="")
    assert (body.fault, "resources" in body.spec) == (None, False)
    metadata = {"name": "guid-b7k2q", "generateName": "guid-", "namespace": "poolboy"}
    born = HandleQuestion(
        names=NAMES, now=NOW, providers={"named": NAMED}, handle={"metadata": metadata, "spec": body.spec}
    )
    (made,) = objects_at(plan_handle(born).spec, "resources")
    assert made["template"] == {"data": {"guid": "b7k2q"}}


@pytest.mark.parametrize("text", ["metadata.uid", "uid", "metadata.creationTimestamp", "creation_timestamp"])
def test_a_template_that_needs_a_created_handle_is_left_to_the_first_pass(text: str) -> None:
    tagged = provider("tagged", template={"definition": {"data": {"tag": f"{{{{ resource_handle.{text} }}}}"}}})
    body = make(pool(provider={"name": "tagged"}), tagged)
    assert (body.fault, "resources" in body.spec) == (None, False)
    spec: dict[str, Any] = body.spec
    born = handle(**spec)
    born["metadata"]["creationTimestamp"] = "handle-uid"
    plan = plan_handle(HandleQuestion(names=NAMES, now=NOW, providers={"tagged": tagged}, handle=born))
    assert objects_at(plan.spec, "resources")[0]["template"] == {"data": {"tag": "handle-uid"}}


def test_the_pass_after_its_birth_changes_nothing_but_the_reference() -> None:
    body = make(pool(provider={"name": "sizes"}, vars={"v": 1}), SIZES)
    spec: dict[str, Any] = body.spec
    plan = plan_handle(HandleQuestion(names=NAMES, now=NOW, providers={"sizes": SIZES}, handle=handle(**spec)))
    recorded = {"apiVersion": "v1", "kind": "ConfigMap", "name": "guid0-b7k2q"}
    (made,) = spec["resources"]
    assert plan.spec == {**spec, "resources": [{**made, "reference": recorded}]}
