"""What templates see of claims, handles, providers and pools; and that they cannot change any of it."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from domain.claims.templates.errors import TemplateError
from domain.claims.templates.renderer import Renderer
from domain.claims.templates.views import ClaimView, HandleView, ProviderView

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
API = "poolboy.gpte.redhat.com/v1"
CLAIM: dict[str, Any] = {
    "apiVersion": API,
    "kind": "ResourceClaim",
    "metadata": {
        "name": "my-claim",
        "namespace": "my-project",
        "uid": "u1",
        "annotations": {"x": "y", "poolboy.gpte.redhat.com/resource-pool-name": "wanted"},
        "labels": {"l": "m"},
        "creationTimestamp": "2026-03-01T00:00:00Z",
        "deletionTimestamp": "2026-03-05T00:00:00Z",
    },
    "spec": {
        "provider": {"name": "p", "parameterValues": {"size": 5}},
        "lifespan": {"end": "2026-03-20T00:00:00Z"},
        "autoDelete": {"when": "delete it"},
        "autoDetach": {"when": "detach it"},
        "resources": [{"name": "r"}],
    },
    "status": {
        "approval": {"state": "pending"},
        "lifespan": {
            "start": "2026-03-02T00:00:00Z",
            "end": "2026-03-10T00:00:00Z",
            "firstReady": "2026-03-03T00:00:00Z",
            "maximum": "7d",
            "relativeMaximum": "3d",
        },
        "provider": {"name": "p", "parameterValues": {"size": 3, "kept": True}},
        "resourceHandle": {"name": "guid-abcde", "namespace": "poolboy"},
        "resources": [{"state": {"spec": {"x": 1}}}],
    },
}
HANDLE: dict[str, Any] = {
    "apiVersion": API,
    "kind": "ResourceHandle",
    "metadata": {"name": "guid-abcde", "namespace": "poolboy", "generateName": "guid-", "uid": "u2"},
    "spec": {
        "vars": {"v": 1},
        "lifespan": {"end": "2026-03-04T06:06:07Z"},
        "provider": {"name": "p", "parameterValues": {"size": 3}},
        "resourceClaim": {"name": "my-claim", "namespace": "my-project"},
        "resourcePool": {"name": "pool", "namespace": "poolboy"},
        "resources": [{"name": "r"}],
    },
    "status": {"healthy": True, "ready": False, "resources": [{"reference": {"name": "x"}}]},
}
PROVIDER: dict[str, Any] = {
    "apiVersion": API,
    "kind": "ResourceProvider",
    "metadata": {"name": "p", "namespace": "poolboy"},
    "spec": {
        "vars": {"v": 2},
        "approval": {"required": True},
        "disableCreation": True,
        "match": {"kind": "X"},
        "override": {"kind": "X", "spec": {}},
        "parameters": [
            {"name": "size", "default": {"value": 1}, "validation": {"openAPIV3Schema": {"default": 9}}},
            {"name": "colour", "validation": {"openAPIV3Schema": {"default": "red"}}},
            {"name": "made", "default": {"template": "{{ guid }}"}},
            {"name": "plain"},
        ],
    },
}
VIEWS: dict[str, object] = {
    "resource_claim": ClaimView(CLAIM),
    "resource_handle": HandleView(HANDLE, now=NOW),
    "resource_provider": ProviderView(PROVIDER),
    "bare_claim": ClaimView(
        {"metadata": {"name": "bare", "namespace": "n", "creationTimestamp": "2026-01-01T00:00:00Z"}}
    ),
    "bare_handle": HandleView({"metadata": {"name": "other-xyzzy"}}),
    "bare_provider": ProviderView({"metadata": {"name": "bare"}}),
}


def shown(expression: str) -> str:
    return str(Renderer(NOW).render("{{ " + expression + " }}", VIEWS, what="here"))


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("resource_claim.metadata.namespace", "my-project"),
        ("resource_claim.meta.name", "my-claim"),
        ("resource_claim['metadata']['name']", "my-claim"),
        ("resource_claim.name", "my-claim"),
        ("resource_claim.namespace", "my-project"),
        ("resource_claim.uid", "u1"),
        ("resource_claim.kind", "ResourceClaim"),
        ("resource_claim.api_version", API),
        ("resource_claim.api_group", "poolboy.gpte.redhat.com"),
        ("'x' in resource_claim.annotations", "True"),
        ("'z' in resource_claim.annotations", "False"),
        ("resource_claim.labels.l", "m"),
        ("resource_claim.creation_timestamp", "2026-03-01T00:00:00Z"),
        ("resource_claim.deletion_timestamp", "2026-03-05T00:00:00Z"),
        ("resource_claim.reference.name ~ resource_claim.reference.kind", "my-claimResourceClaim"),
        ("resource_claim.spec.lifespan.end", "2026-03-20T00:00:00Z"),
        ("resource_claim.status.resources[0].state.spec.x", "1"),
        ("resource_claim.parameter_values", "{'size': 5, 'kept': True}"),
        ("resource_claim.resources[0].name", "r"),
        ("resource_claim.status_resources[0].state.spec.x", "1"),
        ("resource_claim.resource_handle_name", "guid-abcde"),
        ("resource_claim.resource_handle_namespace", "poolboy"),
        ("resource_claim.resource_pool_name", "wanted"),
        ("resource_claim.resource_provider_name", "p"),
        ("resource_claim.approval_state", "pending"),
        ("resource_claim.is_approved", "True"),
        ("resource_claim.is_detached", "False"),
        ("resource_claim.has_resource_handle", "True"),
        ("resource_claim.has_resource_provider", "True"),
        ("resource_claim.validation_failed", "False"),
        ("resource_claim.lifespan_start_timestamp", "2026-03-02T00:00:00Z"),
        ("resource_claim.lifespan_start_datetime", "2026-03-02 00:00:00+00:00"),
        ("resource_claim.lifespan_end_timestamp", "2026-03-10T00:00:00Z"),
        ("resource_claim.lifespan_end_datetime.day", "10"),
        ("resource_claim.lifespan_first_ready_timestamp", "2026-03-03T00:00:00Z"),
        ("resource_claim.lifespan_first_ready_datetime.day", "3"),
        ("resource_claim.requested_lifespan_end_timestamp", "2026-03-20T00:00:00Z"),
        ("resource_claim.requested_lifespan_end_datetime.day", "20"),
        ("resource_claim.lifespan_maximum", "7d"),
        ("resource_claim.lifespan_relative_maximum", "3d"),
        ("resource_claim.auto_delete_when", "delete it"),
        ("resource_claim.auto_detach_when", "detach it"),
        ("resource_claim.vars", "{}"),
        ("bare_claim.status", "{}"),
        ("bare_claim.annotations", "{}"),
        ("bare_claim.parameter_values", "{}"),
        ("bare_claim.resources", "[]"),
        ("bare_claim.lifespan_end_timestamp", "None"),
        ("bare_claim.lifespan_end_datetime", "None"),
        ("bare_claim.lifespan_start_timestamp", "2026-01-01T00:00:00Z"),
        ("bare_claim.is_approved", "False"),
        ("bare_claim.status.a.b | default('none')", "none"),
        ("bare_claim.nonsense | default('none')", "none"),
        ("bare_claim.nonsense.deeper is defined", "False"),
        ("resource_handle.guid", "abcde"),
        ("resource_handle.metadata.name[5:]", "abcde"),
        ("resource_handle.name.startswith('guid-')", "True"),
        ("bare_handle.guid", "xyzzy"),
        ("resource_handle.vars.v", "1"),
        ("resource_handle.parameter_values.size", "3"),
        ("resource_handle.resources[0].name", "r"),
        ("resource_handle.status_resources[0].reference.name", "x"),
        ("resource_handle.is_bound", "True"),
        ("resource_handle.is_healthy", "True"),
        ("resource_handle.is_ready", "False"),
        ("resource_handle.is_from_resource_pool", "True"),
        ("bare_handle.is_bound", "False"),
        ("bare_handle.is_healthy", "None"),
        ("resource_handle.resource_claim_name", "my-claim"),
        ("resource_handle.resource_claim_namespace", "my-project"),
        ("resource_handle.resource_pool_name", "pool"),
        ("resource_handle.resource_pool_namespace", "poolboy"),
        ("resource_handle.resource_provider_name", "p"),
        ("resource_handle.lifespan_end_timestamp", "2026-03-04T06:06:07Z"),
        ("resource_handle.lifespan_end_datetime.hour", "6"),
        ("resource_handle.timedelta_to_lifespan_end", "1:00:00"),
        ("bare_handle.timedelta_to_lifespan_end", "None"),
        ("resource_provider.name", "p"),
        ("resource_provider.vars.v", "2"),
        ("resource_provider.resource_name", "p"),
        ("resource_provider.match", "{'kind': 'X'}"),
        ("resource_provider.override.kind", "X"),
        ("resource_provider.approval_required", "True"),
        ("resource_provider.create_disabled", "True"),
        ("resource_provider.parameter_defaults", "{'size': 1, 'colour': 'red'}"),
        ("resource_provider.as_reference().name", "p"),
        ("bare_provider.approval_required", "False"),
        ("bare_provider.create_disabled", "False"),
    ],
)
def test_an_object_shows(expression: str, result: str) -> None:
    assert shown(expression) == result


@pytest.mark.parametrize(
    ("changed", "expression", "result"),
    [
        ({"status": {"approval": {"state": "approved"}}}, "c.is_approved", "True"),
        ({"status": {"resourceHandle": {"name": "x", "detached": True}}}, "c.is_detached", "True"),
        ({"status": {"provider": {"validationErrors": ["e"]}}}, "c.validation_failed", "True"),
        ({"status": {"resources": [{"validationError": "e"}]}}, "c.validation_failed", "True"),
        (
            {"spec": {"lifespan": {"start": "2026-02-01T00:00:00Z"}}},
            "c.lifespan_start_timestamp",
            "2026-02-01T00:00:00Z",
        ),
        ({"status": {"lifespan": {"end": "no moment"}}}, "c.lifespan_end_datetime", "None"),
        ({"metadata": None, "spec": None, "status": None}, "c.annotations ~ c.spec ~ c.resources", "{}{}[]"),
        (
            {"spec": {"resources": "none"}, "status": {"resources": {"a": 1}}},
            "c.resources ~ c.status_resources",
            "[][]",
        ),
    ],
)
def test_a_claim_shows_its_state(changed: dict[str, Any], expression: str, result: str) -> None:
    claim = ClaimView({"metadata": {"name": "c"}, **changed})
    assert Renderer(NOW).render("{{ " + expression + " }}", {"c": claim}, what="here") == result


CHANGES = [
    "resource_provider.spec.override.update({'kind': 'Pod'})",
    "resource_provider.override.update({'kind': 'Pod'})",
    "resource_provider['spec']['override'].setdefault('a', 1)",
    "resource_provider.spec.parameters[0].clear()",
    "(resource_provider.spec | list | first ~ '').upper() ~ resource_provider.spec.parameters.append(1)",
    "resource_claim.status.pop('lifespan')",
    "resource_claim.resources.extend([1])",
    "(resource_claim.resources | first).update({'a': 1})",
    "(resource_claim.spec | attr('clear'))()",
    "resource_claim.annotations['update']({'a': 'b'})",
    "resource_claim.status_resources[0].state.popitem()",
    "resource_handle.spec.resources.reverse()",
    "resource_provider.vars.update(resource_provider.vars)",
]


@pytest.mark.parametrize("expression", CHANGES)
def test_a_template_cannot_change_what_it_is_given(expression: str) -> None:
    before = copy.deepcopy((CLAIM, HANDLE, PROVIDER))
    with pytest.raises(TemplateError, match="would change a variable of the template"):
        shown(expression)
    assert before == (CLAIM, HANDLE, PROVIDER)


@pytest.mark.parametrize(
    "template",
    [
        "{% set resource_claim.spec = 1 %}",
        "{% set x = resource_claim %}{% set x.name = 1 %}",
        "{% for x in [resource_claim.spec] %}{{ x.update({'a': 1}) }}{% endfor %}",
        "{% macro m(x) %}{{ x.update({'a': 1}) }}{% endmacro %}{{ m(resource_claim.spec) }}",
        "{% set n = namespace(x=resource_claim.spec) %}{{ n.x.clear() }}",
        "{% block b %}{{ resource_claim.spec.clear() }}{% endblock %}",
        "{% for i in [1] %}{% block c scoped %}{{ resource_claim.spec.clear() }}{% endblock %}{% endfor %}",
    ],
)
def test_nor_by_a_detour(template: str) -> None:
    before = copy.deepcopy(CLAIM)
    with pytest.raises(TemplateError):
        Renderer(NOW).render(template, VIEWS, what="here")
    assert before == CLAIM


def test_it_may_fill_what_it_makes_itself() -> None:
    template = (
        "{% set x = {} %}{% set _ = x.update(resource_claim.labels) %}{% set _ = x.update({'n': [1]}) %}"
        "{{ x.n.append(2) }}{{ x }}"
    )
    assert Renderer(NOW).render(template, VIEWS, what="here") == "None{'l': 'm', 'n': [1, 2]}"
    assert CLAIM["metadata"]["labels"] == {"l": "m"}
