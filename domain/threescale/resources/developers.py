"""DeveloperAccount and DeveloperUser: API users. 3scale creates an account only together with its first admin."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from domain.identity import Kind
from domain.schema import Marker, Required
from domain.threescale import DEVELOPER_ACCOUNT, DEVELOPER_USER
from domain.threescale.resources.shared import (
    Conditions,
    Int64,
    InTenant,
    LocalReference,
    RemoteResource,
    RemoteStatus,
    SecretReference,
)

ADMIN = "admin"
MEMBER = "member"


class DeveloperAccountSpec(InTenant):
    """The desired state in 3scale."""

    org_name: Required[str] = Field("", description="The organization's name.")
    monthly_billing_enabled: bool | None = Field(None, description="Whether to write monthly invoices. Default: true.")
    monthly_charging_enabled: bool | None = Field(None, description="Whether to charge each month. Default: true.")


class DeveloperAccountStatus(RemoteStatus):
    """The observed state."""

    account_id: Int64 | None = Field(None, alias="accountID", description="Its id in 3scale.")
    account_state: str | None = Field(None, description="Its state in 3scale.")
    credit_card_stored: bool | None = Field(None, description="Whether 3scale has stored a credit card.")
    conditions: Conditions = Field((), description="Ready, Waiting, Invalid and Failed.")


class DeveloperAccount(RemoteResource):
    """An organisation that uses APIs."""

    kind_of: ClassVar[Kind] = DEVELOPER_ACCOUNT
    id_field: ClassVar[str] = "account_id"
    id_annotation: ClassVar[str] = "accountID"
    counterpart: ClassVar[str] = "3scale account {}"

    spec: DeveloperAccountSpec = DeveloperAccountSpec()
    status: DeveloperAccountStatus = DeveloperAccountStatus()


class DeveloperUserSpec(InTenant):
    """The desired state in 3scale."""

    username: Required[str] = Field("", description="The name to sign in with.")
    email: Required[str] = Field("", description="The user's e-mail address.")
    password_credentials_ref: Required[SecretReference] = Field(
        SecretReference(), description="A Secret with the password under `password`."
    )
    developer_account_ref: Required[LocalReference] = Field(
        LocalReference(), description="The DeveloperAccount that the user belongs to."
    )
    suspended: bool | None = Field(None, description="True to suspend the user.")
    role: Annotated[str | None, Marker(enum=(ADMIN, MEMBER))] = Field(None, description="The role; member if absent.")


class DeveloperUserStatus(RemoteStatus):
    """The observed state. `accoundID` is misspelt, because clients read that name."""

    developer_user_id: Int64 | None = Field(None, alias="developerUserID", description="Its id in 3scale.")
    account_id: Int64 | None = Field(None, alias="accoundID", description="The id of its account in 3scale.")
    developer_user_state: str | None = Field(None, description="Its state in 3scale.")
    conditions: Conditions = Field((), description="Ready, Orphan, Invalid and Failed.")


class DeveloperUser(RemoteResource):
    """A person of an organisation that uses APIs."""

    kind_of: ClassVar[Kind] = DEVELOPER_USER
    id_field: ClassVar[str] = "developer_user_id"
    id_annotation: ClassVar[str] = "userID"
    counterpart: ClassVar[str] = "3scale user {}"

    spec: DeveloperUserSpec = DeveloperUserSpec()
    status: DeveloperUserStatus = DeveloperUserStatus()

    @property
    def owner(self) -> str:
        name = self.spec.developer_account_ref.name
        return f"DeveloperAccount/{self.metadata.namespace}/{name}" if name else ""
