from __future__ import annotations

import secrets as randomness
from typing import Any

from activities.threescale.subjects import Subject
from domain.resource import CustomResource
from domain.threescale.actions import ClusterWrite, WriteSecret
from domain.threescale.application import ObservedApplication
from domain.threescale.application_auth import ObservedAuth, SecretContent
from domain.threescale.application_credentials import APPLICATION_ID, credentials
from domain.threescale.developer_account import ObservedAccount, admin_of
from domain.threescale.developer_user import ObservedUser, password_of
from domain.threescale.duplicate_owners import Holder, holders_of, seniority
from domain.threescale.idempotent_creations import parent_of_creation
from domain.threescale.provider_account import NoAccount, named_secret
from domain.threescale.reference_names import users_of_account
from domain.threescale.resources import Application, ApplicationAuth, DeveloperAccount, DeveloperUser, Product
from domain.threescale.usable_referents import id_of_account

_KEY_BYTES = 16  # as long as 3scale's own keys


class AccountSubject(Subject[DeveloperAccount]):
    async def observed(self) -> ObservedAccount:
        account = self.resource
        await self.find_tenant()
        users = self.cache.named(DeveloperUser, users_of_account(self.namespace, account.metadata.name))
        admin = admin_of(account, users, self.provider.url)
        return ObservedAccount(
            **await self.common(),
            users=users,
            secrets=await self.secrets.there([password_of(admin)]) if admin else (),
        )


class UserSubject(Subject[DeveloperUser]):
    async def observed(self) -> ObservedUser:
        user, account = self.resource, self.resource.spec.developer_account_ref.name
        await self.find_account(user.spec.tenant_secret)
        return ObservedUser(
            **await self.common(),
            account=self.cache.get(DeveloperAccount, self.namespace, account),
            former=self._former_account(),
            secrets=await self.secrets.there([password_of(user)]),
        )

    def _former_account(self) -> DeveloperAccount | None:
        user = self.resource
        id_ = user.status.account_id or parent_of_creation(user.metadata)
        having = self.cache.having(DeveloperAccount, id_)
        of_tenant = (each for each in having if id_of_account(each, self.provider.url))
        return min(of_tenant, key=lambda each: seniority(each.metadata), default=None)


class ApplicationSubject(Subject[Application]):
    async def observed(self) -> ObservedApplication:
        application, spec = self.resource, self.resource.spec
        account = self.cache.get(DeveloperAccount, self.namespace, spec.account_cr.name)
        product = self.cache.get(Product, self.namespace, spec.product_cr.name)
        self.provider = NoAccount(why="its account does not exist", waits_for="")
        if account is not None:
            await self.find_account(named_secret(account))
        wanted = credentials(application, product).values() if product else ()
        return ObservedApplication(
            **await self.common(),
            account=account,
            product=product,
            secrets=await self.secrets.there(wanted),
        )

    async def holders(self, *found: int) -> tuple[Holder, ...]:
        """Other Applications with this Application's 3scale id or an id in `found`, and all others of its account."""
        account = f"DeveloperAccount/{self.namespace}/{self.resource.spec.account_cr.name}"
        others = self.cache.referring(Application, account)
        return (*await super().holders(*found), *holders_of(self.resource, self.provider.url, others))

    def secret_of(self, other: CustomResource) -> str:
        assert isinstance(other, Application)  # noqa: S101 - an Application is compared only with Applications
        return named_secret(self.cache.get(DeveloperAccount, other.metadata.namespace, other.spec.account_cr.name))


class AuthSubject(Subject[ApplicationAuth]):
    async def observed(self) -> ObservedAuth:
        spec = self.resource.spec
        await self.find_account(spec.tenant_secret)
        application = self.cache.get(Application, self.namespace, spec.application_cr_name)
        account, product = None, None
        if application is not None:
            named = application.spec
            account = self.cache.get(DeveloperAccount, self.namespace, named.account_cr.name)
            product = self.cache.get(Product, self.namespace, named.product_cr.name)
        common, secret = await self.common(), await self._secret()
        return ObservedAuth(**common, application=application, account=account, product=product, secret=secret)

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
