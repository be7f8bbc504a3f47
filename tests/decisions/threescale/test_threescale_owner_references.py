"""Which objects get a Tenant for their owner, and go with it."""

from __future__ import annotations

from typing import Any

import pytest
from threescale_objects import ACCOUNT, NO_ACCOUNT, after, backend, metadata, product

from domain.resource import CustomResource, ObjectMeta, OwnerReference
from domain.threescale import TENANT
from domain.threescale.owner_references import belonging, owned
from domain.threescale.resources import Tenant

CASCADE = {"perdure.dev/cascade": "true"}
SECRET = {"name": "threescale-provider-account"}


def tenant(meta: dict[str, Any] | None = None, **spec: Any) -> Tenant:
    made = metadata("branch", **{"annotations": CASCADE, **(meta or {})})
    return Tenant.model_validate({"metadata": made, "spec": {"tenantSecretRef": SECRET, **spec}})


@pytest.mark.parametrize("resource", [product(), backend()])
def test_an_object_of_a_tenant_that_takes_it_along_gets_it_for_its_owner(resource: CustomResource) -> None:
    found = belonging(resource, ACCOUNT, (tenant(),))

    (owner,) = found["metadata"]["ownerReferences"]  # type: ignore[index,call-overload]
    assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == ("Tenant", "branch", "uid-branch", True)


@pytest.mark.parametrize(
    "other",
    [
        tenant({"annotations": {}}),
        tenant({"namespace": "elsewhere"}),
        tenant({"deletionTimestamp": "2026-11-22T00:00:00Z"}),
        tenant(tenantSecretRef={"name": "another"}),
    ],
    ids=["does not say so", "elsewhere", "going", "another's Secret"],
)
def test_no_other_object_becomes_its_owner(other: Tenant) -> None:
    assert belonging(product(), ACCOUNT, (other,)) == {}


@pytest.mark.parametrize("annotations", [{}, {"perdure.dev/cascade": "false"}])
def test_an_object_is_released_by_a_tenant_that_takes_it_along_no_more(annotations: dict[str, str]) -> None:
    own = after(product(), belonging(product(), ACCOUNT, (tenant(),)))
    assert belonging(own, ACCOUNT, (tenant(),)) == {}
    kept = tenant({"annotations": annotations})
    assert belonging(own, ACCOUNT, ()) == belonging(own, NO_ACCOUNT, (kept,)) == {}
    released = after(own, belonging(own, ACCOUNT, (kept,)))
    assert (released.metadata.owner_references, released.metadata.annotations) == ((), product().metadata.annotations)


def test_an_owner_reference_of_the_replaced_operator_stays() -> None:
    reference = {"apiVersion": TENANT.api_version, "kind": "Tenant", "name": "branch", "uid": "uid-branch"}
    taken_over = product(meta={"ownerReferences": [{**reference, "controller": True}]})
    assert belonging(taken_over, ACCOUNT, (tenant({"annotations": {}}),)) == {}


def test_an_object_with_an_owner_or_without_a_tenant_or_new_or_going_is_left_alone() -> None:
    owner = {"apiVersion": "v1", "kind": "OpenAPI", "name": "pets", "uid": "1", "controller": True}
    for meta in ({"ownerReferences": [owner]}, {"finalizers": []}, {"deletionTimestamp": "2026-11-22T00:00:00Z"}):
        assert belonging(product(meta=meta), ACCOUNT, (tenant(),)) == {}
    assert belonging(product(), NO_ACCOUNT, (tenant(),)) == {}


def test_an_object_that_another_controls_gets_its_owner_beside_that_one() -> None:
    other = OwnerReference(api_version="v1", kind="Shop", name="till", uid="1", controller=True)
    before = OwnerReference(api_version=TENANT.api_version, kind="Tenant", name="branch", uid="of before")
    of_another_group = before.model_copy(update={"api_version": "storage.example.com/v2", "uid": "2"})
    patch: Any = owned(ObjectMeta(owner_references=(other, before, of_another_group)), tenant())

    assert [(each["kind"], each["uid"], each["controller"]) for each in patch["metadata"]["ownerReferences"]] == [
        ("Shop", "1", True),
        ("Tenant", "2", False),
        ("Tenant", "uid-branch", False),
    ]
