"""What is sure before a tenant is made: that its token, which is shown once, can be kept."""

from __future__ import annotations

from typing import Any, cast

import pytest
from threescale_objects import metadata

from activities.threescale.homes import Homes
from activities.threescale.known import View
from activities.threescale.masters import TenantSubject
from activities.threescale.secrets import Secrets
from domain.threescale import TENANT
from domain.threescale.calls import Resource, Write
from domain.threescale.resources import Tenant
from engine.errors import Invalid
from engine.kube import KubeApi

CREATION = Write(resource=Resource.TENANT, method="POST", path="providers")


class Trials:
    """An API server that is asked whether a Secret could be written."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def applied(self, kind: object, obj: dict[str, Any], namespace: str) -> dict[str, object]:
        self.asked.append((namespace, obj))
        if " " in obj["metadata"]["name"]:
            raise Invalid(f"Secret {obj['metadata']['name']}: a lowercase RFC 1123 subdomain must consist of ...")
        return obj


def subject(kube: Trials, organization: str) -> TenantSubject:
    tenant = Tenant.model_validate(
        {
            "metadata": metadata("acme", TENANT.finalizer),
            "spec": {"organizationName": organization, "tenantSecretRef": {"name": f"acme-{organization.lower()}"}},
        }
    )
    return TenantSubject(tenant, cast("View", None), Secrets(cast("KubeApi", kube), Homes()))


async def test_a_tenant_is_not_made_whose_secret_could_not_be_written() -> None:
    with pytest.raises(Invalid, match="acme-red roses"):
        await subject(Trials(), "Red Roses").prepare(CREATION)


async def test_a_secret_is_tried_with_its_keys_and_before_the_creation_alone() -> None:
    kube = Trials()
    for write in (CREATION, CREATION.model_copy(update={"method": "PUT", "path": "providers/5"})):
        await subject(kube, "ACME").prepare(write)

    names = {"name": "acme-acme", "namespace": "shop"}
    assert kube.asked == [("shop", {"metadata": names, "stringData": {"token": "", "adminURL": ""}})]
