"""Tenant: a tenant of a 3scale installation, created through its master."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from domain.identity import Kind
from domain.resource import KubeModel
from domain.schema import Required
from domain.threescale import TENANT
from domain.threescale.resources.shared import Conditions, Int64, RemoteResource, SecretReference, SyncedStatus


class TenantSpec(KubeModel):
    """The desired state in 3scale."""

    username: Required[str] = Field("", description="The first admin's name.")
    email: Required[str] = Field("", description="The first admin's e-mail address.")
    organization_name: Required[str] = Field("", description="The organization's name.")
    system_master_url: Required[str] = Field("", description="The master's address.")
    tenant_secret_ref: Required[SecretReference] = Field(
        SecretReference(), description="The Secret that gets the tenant's address and token."
    )
    password_credentials_ref: Required[SecretReference] = Field(
        SecretReference(), description="A Secret with the first admin's password under `admin_password`."
    )
    master_credentials_ref: Required[SecretReference] = Field(
        SecretReference(), description="A Secret with the master's token under `MASTER_ACCESS_TOKEN`."
    )
    from_email: str | None = Field(None, description="The sender address of its e-mails.")
    support_email: str | None = Field(None, description="The e-mail address to which its developers' questions go.")
    finance_support_email: str | None = Field(
        None, description="The e-mail address to which questions about invoices go."
    )
    site_access_code: str | None = Field(None, description="The access code of its developer portal.")


class TenantStatus(SyncedStatus):
    """The observed state."""

    tenant_id: Int64 = Field(0, description="Its id in 3scale; absent until it is known.")
    admin_id: Int64 = Field(0, description="The first admin's id in 3scale; absent until it is known.")
    conditions: Conditions = Field((), description="Ready, and Orphan, Invalid or Failed while it has a problem.")


class Tenant(RemoteResource):
    """A tenant of a 3scale installation."""

    kind_of: ClassVar[Kind] = TENANT
    id_field: ClassVar[str] = "tenant_id"
    id_annotation: ClassVar[str] = "tenantID"
    counterpart: ClassVar[str] = "3scale tenant {} with all it holds"

    spec: TenantSpec = TenantSpec()
    status: TenantStatus = TenantStatus()
