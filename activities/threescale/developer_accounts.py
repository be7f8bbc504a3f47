from __future__ import annotations

from typing import Any

from activities.threescale.subjects import Subject
from domain.threescale.application import ObservedApplication
from domain.threescale.application_sync import credentials
from domain.threescale.calls import Read, Resource
from domain.threescale.developer_account import ObservedAccount, admin_of
from domain.threescale.developer_credentials import password_of
from domain.threescale.developer_user import ObservedUser
from domain.threescale.duplicate_owners import Holder
from domain.threescale.reference_names import users_of_account
from domain.threescale.resources import Application, DeveloperAccount, DeveloperUser, Product


class AccountSubject(Subject[DeveloperAccount]):
    async def observed(self) -> ObservedAccount:
        account = self.resource
        await self.find_tenant()
        users = self.cache.named(DeveloperUser, users_of_account(self.namespace, account.metadata.name))
        admin = admin_of(account, users, self.provider.url)
        return ObservedAccount(
            **self.common(),
            users=users,
            holders=self.holders(self.siblings()),
            secrets=await self.secrets.there([password_of(admin)]) if admin else (),
        )


class UserSubject(Subject[DeveloperUser]):
    async def observed(self) -> ObservedUser:
        user, account = self.resource, self.resource.spec.developer_account_ref.name
        self.provider = await self.secrets.account(user, user.spec.provider_account_ref)
        siblings = self.cache.named(DeveloperUser, users_of_account(self.namespace, account))
        return ObservedUser(
            **self.common(),
            account=self.cache.get(DeveloperAccount, self.namespace, account),
            holders=self.holders(siblings),
            secrets=await self.secrets.there([password_of(user)]),
        )


class ApplicationSubject(Subject[Application]):
    async def observed(self) -> ObservedApplication:
        application, spec = self.resource, self.resource.spec
        account = self.cache.get(DeveloperAccount, self.namespace, spec.account_cr.name)
        product = self.cache.get(Product, self.namespace, spec.product_cr.name)
        reference = account.spec.provider_account_ref if account else None
        self.provider = await self.secrets.account(application, reference)
        wanted = credentials(application, product).values() if product else ()
        return ObservedApplication(
            **self.common(),
            account=account,
            product=product,
            holders=self._others(),
            secrets=await self.secrets.there(wanted),
        )

    async def noticed(self, read: Read, body: object) -> dict[str, Any]:
        """Read `holders` again, because a found application may belong to another object by now."""
        return {} if read.resource is Resource.PLAN else {"holders": self._others()}

    def _others(self) -> tuple[Holder, ...]:
        account = f"DeveloperAccount/{self.namespace}/{self.resource.spec.account_cr.name}"
        others = self.cache.referring(Application, account)
        return self.holders(others)
