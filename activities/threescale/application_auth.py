from __future__ import annotations

import secrets as randomness
from typing import Any

from activities.threescale.subjects import Subject
from domain.threescale.actions import ClusterWrite, WriteSecret
from domain.threescale.application_auth import APPLICATION_ID, ObservedAuth, SecretContent
from domain.threescale.resources import Application, ApplicationAuth, DeveloperAccount, Product

_KEY_BYTES = 16  # as long as 3scale's own keys


class AuthSubject(Subject[ApplicationAuth]):
    async def observed(self) -> ObservedAuth:
        spec = self.resource.spec
        self.provider = await self.secrets.account(self.resource, spec.provider_account_ref)
        application = self.cache.get(Application, self.namespace, spec.application_cr_name)
        account, product = None, None
        if application is not None:
            named = application.spec
            account = self.cache.get(DeveloperAccount, self.namespace, named.account_cr.name)
            product = self.cache.get(Product, self.namespace, named.product_cr.name)
        return ObservedAuth(
            **self.common(), application=application, account=account, product=product, secret=await self._secret()
        )

    async def _secret(self) -> SecretContent | None:
        name = self.resource.spec.auth_secret_ref.name
        content = await self.secrets.content(self.namespace, name)
        if content is None:
            return None
        return SecretContent(
            name=name,
            there=tuple(sorted(content.values)),
            filled=tuple(sorted(key for key, value in content.values.items() if value)),
            application_id=content.values.get(APPLICATION_ID, ""),
        )

    async def write(self, write: ClusterWrite) -> dict[str, Any]:
        if isinstance(write, WriteSecret):
            generated = {key: randomness.token_hex(_KEY_BYTES) for key in write.generated}
            name = self.resource.spec.auth_secret_ref.name
            await self.secrets.write(self.namespace, name, {**generated, **write.values})
        return {"secret": await self._secret()}
