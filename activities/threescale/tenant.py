"""Tenant: a tenant of an installation, created by the installation's master.

Before the creation, a dry run proves that the Secret for the token can be written. The write itself is retried for up
to two minutes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

from activities.threescale.subjects import Subject
from domain.resource import CustomResource, ObjectMeta
from domain.threescale.actions import ClusterWrite, WriteSecret
from domain.threescale.calls import Resource, Write
from domain.threescale.provider_account import ADDRESS_KEY, TOKEN_KEY, SecretView, same_tenant
from domain.threescale.resources import Tenant
from domain.threescale.tenant import (
    ObservedTenant,
    foreign_token,
    master_of,
    password_of_admin,
    secret_of,
    secret_with,
    token_place,
)
from engine.errors import ApiError, Denied, Invalid
from engine.kube.json import JsonObject, mapping, sequence, text

# The attempts are one second apart. An API server that is down recovers within two minutes, or not soon.
MOST_ATTEMPTS = 120

log = logging.getLogger(__name__)


class TenantSubject(Subject[Tenant]):
    async def observed(self) -> ObservedTenant:
        reference = self.resource.spec.master_credentials_ref
        master = await self.secrets.view(reference.namespace or self.namespace, reference.name)
        self.provider = master_of(self.resource, master)
        return ObservedTenant(
            **await self.common(),
            secret=await self._secret(),
            secrets=await self.secrets.there([password_of_admin(self.resource)]),
            siblings=self.siblings(),
        )

    async def _secret(self) -> SecretView | None:
        try:
            return await self.secrets.view(*token_place(self.resource))
        except Denied:
            if self.resource.metadata.deleting:
                return None  # the organisation's name is enough for a deletion
            raise

    def siblings(self) -> tuple[ObjectMeta, ...]:
        tenant, spec = self.resource, self.resource.spec
        candidates = [each for each in self.cache.siblings(tenant) if self.is_of_tenant(each)]
        place = token_place(tenant)
        named = self.cache.referring(Tenant, f"Secret/{'/'.join(place)}") if spec.tenant_secret_ref.name else ()
        candidates += [each for each in named if token_place(each) == place]
        others = {each.metadata.uid: each.metadata for each in candidates if each.metadata.uid != tenant.metadata.uid}
        return tuple(others.values())

    async def _find_homes(self, others: Iterable[CustomResource]) -> None:
        return  # `is_of_tenant` compares addresses in specs

    def is_of_tenant(self, other: CustomResource) -> bool:
        url = self.resource.spec.system_master_url
        return isinstance(other, Tenant) and same_tenant(other.spec.system_master_url, url)

    async def prepare(self, write: Write) -> None:
        if write.resource is Resource.TENANT and write.method == "POST":
            place = token_place(self.resource)
            found = await self.secrets.content(*place)
            if found and found.values.get(TOKEN_KEY) and (why := foreign_token(self.resource, found.meta.labels)):
                raise Denied(why, code="SecretNotOurs")
            # For an existing Secret the dry run leaves out the owner, because the Secret may have a controller already.
            secret = secret_with(self.resource, {TOKEN_KEY: "", ADDRESS_KEY: ""}, ObjectMeta() if found else None)
            await self.secrets.may_put(secret)

    async def keep(self, write: Write, body: object) -> dict[str, Any]:
        if write.resource is not Resource.TENANT:
            return {}
        refused = False
        for attempt in range(MOST_ATTEMPTS):
            try:
                found = await self.secrets.content(*token_place(self.resource))
                secret = secret_of(self.resource, body, found.meta if found else None)
                if not secret:
                    return {}
                if refused:  # perhaps the owner, which the dry run leaves out for an existing Secret
                    secret = _without_owner(secret, self.resource)
                await self.secrets.put(secret, exists=found is not None)
                break
            except ApiError as error:
                refused |= isinstance(error, Denied | Invalid)
                log.warning(
                    "%s: its token could not be written into its Secret yet: %s", self.resource.key.path, error.message
                )
                if attempt + 1 == MOST_ATTEMPTS:
                    raise
                await asyncio.sleep(1)
        return {"secret": await self._secret()}

    async def write(self, write: ClusterWrite) -> dict[str, Any]:
        if isinstance(write, WriteSecret):
            await self.secrets.write(*token_place(self.resource), write.values)
        return {"secret": await self._secret()}


def _without_owner(secret: JsonObject, tenant: Tenant) -> JsonObject:
    metadata = mapping(secret, "metadata")
    if "ownerReferences" not in metadata:
        return secret
    references = sequence(metadata, "ownerReferences")
    others = [each for each in references if text(each, "uid") != tenant.metadata.uid]
    return {**secret, "metadata": {**metadata, "ownerReferences": others or None}}
