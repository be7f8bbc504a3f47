"""Tenant in a pass: a tenant of an installation, created by the installation's master.

The token of a new tenant is in the answer to its creation and nowhere else: it is written into its Secret before
anything else, and retried until that succeeds. Where the Secret could not be written (the organisation's name makes no
name of a Secret, the namespace does not exist) no tenant is created: a dry run of the write comes before.
"""

from __future__ import annotations

import asyncio
import logging

from activities.threescale.known import View
from activities.threescale.secrets import Secrets
from activities.threescale.subjects import Subject
from domain.resource import ObjectMeta
from domain.threescale.calls import Read, Resource, SecretKey, Write
from domain.threescale.providers import ADDRESS_KEY, TOKEN_KEY, SecretView, same_tenant
from domain.threescale.resources import Tenant
from domain.threescale.tenant import (
    TOKEN_SECRET_LABELS,
    ObservedTenant,
    master_of,
    secret_of,
    work_for_tenant,
)
from domain.threescale.tenant_sync import KnownTenant, password_of_admin, read_tenant, wrote_tenant
from domain.threescale.work import Effect, SecretWrite
from engine.errors import ApiError, Denied

# How often the Secret is tried, a second apart: an API server that is away comes back within that, or never.
MOST_ATTEMPTS = 120

log = logging.getLogger(__name__)


class TenantSubject(Subject[Tenant]):
    """A Tenant."""

    decide = staticmethod(work_for_tenant)

    def __init__(self, resource: Tenant, view: View, secrets: Secrets) -> None:
        super().__init__(resource, view, secrets)
        self._secret: SecretView | None = None
        self._keys: tuple[SecretKey, ...] = ()
        self._found = KnownTenant()

    async def gather(self) -> None:
        """The master, the Secret for the token, the first admin's password."""
        spec = self.resource.spec
        reference = spec.master_credentials_ref
        self.provider = master_of(
            self.resource, await self.secrets.view(reference.namespace or self.namespace, reference.name)
        )
        self._keys = await self.secrets.there([password_of_admin(self.resource)])
        await self._look_into_secret()

    async def _look_into_secret(self) -> None:
        reference = self.resource.spec.tenant_secret_ref
        self._secret = await self.secrets.view(reference.namespace or self.namespace, reference.name)

    def observed(self) -> ObservedTenant:
        """What its decision sees."""
        return ObservedTenant(
            tenant=self.resource,
            master=self.provider,
            secret=self._secret,
            secrets=self._keys,
            siblings=self._siblings(),
            holders=self.holders(self._of_organization()),
            found=self._found,
        )

    def _siblings(self) -> tuple[ObjectMeta, ...]:
        """Other Tenants of the organisation and master, or with the same Secret for the token."""
        tenant, spec = self.resource, self.resource.spec
        alike = [*self._of_organization()]
        named = self.view.referring(Tenant, _secret_of(tenant)) if spec.tenant_secret_ref.name else ()
        alike += [each for each in named if _secret_of(each) == _secret_of(tenant)]
        others = {each.metadata.uid: each.metadata for each in alike if each.metadata.uid != tenant.metadata.uid}
        return tuple(others.values())

    def _of_organization(self) -> tuple[Tenant, ...]:
        url = self.resource.spec.system_master_url
        return tuple(
            each for each in self.view.siblings(self.resource) if same_tenant(each.spec.system_master_url, url)
        )

    def read(self, read: Read, answer: object) -> None:
        """The tenant, those among which it may be, or its users."""
        self._found = read_tenant(self._found, read, answer, self.resource)

    async def prepare(self, write: Write) -> None:
        """That the new tenant's token can be kept: its only showing is the answer to the creation.

        Raises:
            ApiError: it could not, or would take the place of a stranger's token.
        """
        if write.resource is Resource.TENANT and write.method == "POST":
            reference = self.resource.spec.tenant_secret_ref
            where = reference.namespace or self.namespace
            found = await self.secrets.content(where, reference.name)
            if found and found.values.get(TOKEN_KEY) and not TOKEN_SECRET_LABELS.items() <= found.labels.items():
                message = (
                    f"Secret {where}/{reference.name} holds a token that no Tenant has put there: it is not "
                    "overwritten. Name another Secret in spec.tenantSecretRef, or delete this one."
                )
                raise Denied(message, code="SecretNotOurs")
            await self.secrets.may_put(where, reference.name, (TOKEN_KEY, ADDRESS_KEY))

    async def keep(self, write: Write, answer: object) -> None:
        """The new tenant's token."""
        secret = secret_of(self.resource, answer) if write.resource is Resource.TENANT else {}
        if not secret:
            return
        for attempt in range(MOST_ATTEMPTS):
            try:
                await self.secrets.put(dict(secret))
                break
            except ApiError as error:
                log.warning("%s: the Secret with its token: %s", self.resource.key.path, error.message)
                if attempt + 1 == MOST_ATTEMPTS:
                    raise
                await asyncio.sleep(1)
        await self._look_into_secret()

    def wrote(self, write: Write, answer: object) -> None:
        """The tenant is made, changed or scheduled for deletion, or one of its users changed."""
        self._found = wrote_tenant(self._found, write, answer)

    def forget(self) -> None:
        """It is looked for again."""
        self._found = KnownTenant()

    async def carry_out(self, effect: Effect) -> None:
        """Its address goes into the Secret."""
        if isinstance(effect, SecretWrite):
            reference = self.resource.spec.tenant_secret_ref
            await self.secrets.write(reference.namespace or self.namespace, reference.name, effect.values)
            await self._look_into_secret()


def _secret_of(tenant: Tenant) -> str:
    reference = tenant.spec.tenant_secret_ref
    return f"Secret/{reference.namespace or tenant.metadata.namespace}/{reference.name}"
