"""Specs of Products and Backends: what is filled in, and what is refused in which words."""

from __future__ import annotations

from typing import Any

import pytest

from domain.threescale import spec_defaults
from domain.threescale.faults import Fault, message_of
from domain.threescale.resources import ActiveDoc, Backend, Product, Tenant
from domain.threescale.spec_validation import faults_of_backend, faults_of_product

HITS = {"friendlyName": "Hits", "unit": "hit"}


def product(**spec: Any) -> Product:
    return Product.model_validate({"spec": {"name": "My API", "systemName": "api", "metrics": {"hits": HITS}, **spec}})


def backend(**spec: Any) -> Backend:
    return Backend.model_validate({"spec": {"name": "My API", "systemName": "api", "metrics": {"hits": HITS}, **spec}})


def details(obj: Product | Backend) -> list[tuple[str, str]]:
    faults = faults_of_product(obj.spec) if isinstance(obj, Product) else faults_of_backend(obj.spec)
    return [(fault.path, fault.detail) for fault in faults]


def test_an_open_product_is_filled_in() -> None:
    assert spec_defaults.of_product(Product.model_validate({"spec": {"name": "My API (v2)"}}).spec) == {
        "systemName": "MyAPIv2",
        "metrics": {"hits": {"friendlyName": "Hits", "unit": "hit", "description": "Number of API hits"}},
        "policies": [{"name": "apicast", "version": "builtin", "enabled": True, "configuration": {}}],
    }


def test_defaults_that_were_filled_in_stay() -> None:
    apicast = {"name": "apicast", "version": "builtin", "enabled": True, "configuration": {"a": 1}}

    assert spec_defaults.of_product(product(systemName="mine", policies=[apicast]).spec) == {}
    assert spec_defaults.of_backend(backend(systemName="mine").spec) == {}


def test_without_a_spec_there_is_nothing_to_write_into_it() -> None:
    """The API server would refuse a spec that has defaults and no name."""
    assert spec_defaults.of_product(Product().spec) == spec_defaults.of_backend(Backend().spec) == {}


def test_a_policy_without_configuration_gets_an_empty_one_and_keeps_its_reference() -> None:
    cors = {"name": "cors", "version": "builtin", "enabled": False, "configurationRef": {"name": "secret"}}
    filled = spec_defaults.of_product(product(systemName="mine", policies=[cors]).spec)

    assert filled == {
        "policies": [
            {"configuration": {}, **cors},
            {"name": "apicast", "version": "builtin", "enabled": True, "configuration": {}},
        ]
    }


def test_a_document_gets_a_lower_case_name_and_its_own_namespace() -> None:
    document = ActiveDoc.model_validate(
        {
            "metadata": {"namespace": "ns"},
            "spec": {"name": "My Doc-1", "activeDocOpenAPIRef": {"secretRef": {"name": "s"}}},
        }
    )

    assert spec_defaults.of_active_doc(document) == {
        "systemName": "mydoc1",
        "activeDocOpenAPIRef": {"secretRef": {"namespace": "ns"}},
    }


def test_a_name_of_which_no_system_name_can_be_made_asks_for_one() -> None:
    document = ActiveDoc.model_validate({"spec": {"name": "商店", "activeDocOpenAPIRef": {"url": "https://x"}}})
    assert spec_defaults.of_active_doc(document) == {}

    for one in (product(name="商店", systemName=""), backend(name="商店", systemName="")):
        filled = spec_defaults.of_product(one.spec) if isinstance(one, Product) else spec_defaults.of_backend(one.spec)
        assert "systemName" not in filled
        assert details(one) == [("spec.systemName", "a name without letters or digits yields no system name.")]


def test_a_tenants_secret_is_named_after_both() -> None:
    tenant = Tenant.model_validate(
        {"metadata": {"name": "Mine", "namespace": "ns"}, "spec": {"organizationName": "ACME"}}
    )

    assert spec_defaults.of_tenant(tenant) == {"tenantSecretRef": {"name": "mine-acme", "namespace": "ns"}}


def test_a_sound_product_has_no_fault() -> None:
    sound = product(
        methods={"get": {"friendlyName": "Get"}},
        mappingRules=[{"httpMethod": "GET", "pattern": "/", "metricMethodRef": "get", "increment": 1}],
        applicationPlans={
            "gold": {
                "limits": [
                    {"period": "day", "value": 1, "metricMethodRef": {"systemName": "hits"}},
                    {"period": "day", "value": 1, "metricMethodRef": {"systemName": "hits", "backend": "b"}},
                    {"period": "week", "value": 1, "metricMethodRef": {"systemName": "hits"}},
                ],
                "pricingRules": [
                    {"from": 1, "to": 100, "pricePerUnit": "1", "metricMethodRef": {"systemName": "get"}},
                    {"from": 101, "to": 200, "pricePerUnit": "1", "metricMethodRef": {"systemName": "get"}},
                    {"from": 1, "to": 9, "pricePerUnit": "1", "metricMethodRef": {"systemName": "hits"}},
                ],
            }
        },
    )

    assert details(sound) == []


def test_metrics_are_never_without_hits() -> None:
    other = {"friendlyName": "Other", "unit": "1"}

    assert details(product(metrics={})) == [("spec.metrics", "empty metrics is not valid for Product.")]
    assert details(backend(metrics={"other": other})) == [
        ("spec.metrics", "metrics map not valid for Backend. 'hits' metric must exist.")
    ]


def test_system_names_are_unique_over_metrics_and_methods() -> None:
    assert details(product(methods={"hits": {"friendlyName": "Other"}})) == [
        ("spec.methods[hits]", "method system_name not unique.")
    ]


def test_names_for_people_are_unique_among_themselves() -> None:
    """3scale weakness 15: names for people are compared with system names, at random."""
    both = product(
        metrics={"hits": HITS, "a": {"friendlyName": "Same", "unit": "1"}}, methods={"b": {"friendlyName": "Same"}}
    )
    crossed = product(
        metrics={"hits": HITS, "a": {"friendlyName": "b", "unit": "1"}, "b": {"friendlyName": "a", "unit": "1"}}
    )

    assert details(both) == [
        ("spec.metrics[a]", "metric name not unique."),
        ("spec.methods[b]", "method name not unique."),
    ]
    assert details(crossed) == []


@pytest.mark.parametrize("make", [product, backend])
def test_a_rule_counts_for_something_that_there_is(make: Any) -> None:
    rules = [
        {"httpMethod": "GET", "pattern": "/", "metricMethodRef": name, "increment": 1} for name in ("hits", "gone")
    ]

    assert details(make(mappingRules=rules)) == [
        ("spec.mappingRules[1]", "mappingrule does not have valid metric or method reference.")
    ]


def plan(**fields: Any) -> Product:
    return product(applicationPlans={"gold": fields})


def test_limits_name_what_there_is_once_per_period() -> None:
    limits = [
        {"period": "day", "value": 1, "metricMethodRef": {"systemName": name}} for name in ("hits", "gone", "hits")
    ]

    assert details(plan(limits=limits)) == [
        ("spec.applicationPlans[gold].limits[1]", "limit does not have valid local metric or method reference."),
        ("spec.applicationPlans[gold].limits[2]", "limit period is not unique for the same metric."),
    ]


def test_a_price_names_what_there_is() -> None:
    price = {"from": 1, "to": 2, "pricePerUnit": "1", "metricMethodRef": {"systemName": "gone"}}

    assert details(plan(pricingRules=[price])) == [
        (
            "spec.applicationPlans[gold].pricingRules[0]",
            "Pricing rule does not have valid local metric or method reference.",
        )
    ]


@pytest.mark.parametrize(
    ("ranges", "detail"),
    [
        ([(5, 1)], "'To' value cannot be less than your 'From' value."),
        ([(1, 100), (50, 60)], "'From' value cannot be less than 'To' values of current rules for the same metric."),
        ([(1, 100), (100, 200)], "'From' value cannot be less than 'To' values of current rules for the same metric."),
        ([(50, 60), (1, 100)], "'From' value cannot be less than 'To' values of current rules for the same metric."),
    ],
)
def test_ranges_of_prices_do_not_share_a_unit(ranges: list[tuple[int, int]], detail: str) -> None:
    rules = [
        {"from": first, "to": last, "pricePerUnit": "1", "metricMethodRef": {"systemName": "hits"}}
        for first, last in ranges
    ]

    assert details(plan(pricingRules=rules)) == [
        (f"spec.applicationPlans[gold].pricingRules[{len(ranges) - 1}]", detail)
    ]


def test_faults_come_in_one_order_whatever_the_order_of_the_fields() -> None:
    bad = {"limits": [{"period": "day", "value": 1, "metricMethodRef": {"systemName": "gone"}}]}
    names = ("b", "a", "c")
    one = product(applicationPlans=dict.fromkeys(names, bad))
    other = product(applicationPlans=dict.fromkeys(reversed(names), bad))

    assert message_of(faults_of_product(one.spec)) == message_of(faults_of_product(other.spec))


def test_a_message_says_field_value_and_reason() -> None:
    fault = Fault(path="spec.a", value="x", detail="no.")

    assert message_of([fault]) == 'spec.a: Invalid value: "x": no.'
    assert message_of([fault, Fault(path="spec.b", value=None, detail="give one.")]) == (
        '[spec.a: Invalid value: "x": no., spec.b: Required value: give one.]'
    )


def test_an_empty_name_is_the_only_fault_of_a_product_and_of_a_backend() -> None:
    """Defaults need a name: a missing value that they would have filled in is no mistake."""
    unnamed = {"name": "", "systemName": "", "metrics": {}}
    for faults in (faults_of_product(product(**unnamed).spec), faults_of_backend(backend(**unnamed).spec)):
        assert [fault.path for fault in faults] == ["spec.systemName"]
