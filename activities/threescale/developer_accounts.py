"""DeveloperAccount, DeveloperUser and Application in a pass: who uses APIs, and with what."""

from __future__ import annotations

from typing import ClassVar

from activities.threescale.known import View
from activities.threescale.secrets import Secrets
from activities.threescale.subjects import SingleSubject
from domain.threescale.application import ObservedApplication, work_for_application
from domain.threescale.application_sync import credentials, is_application
from domain.threescale.calls import Read, Resource, SecretKey
from domain.threescale.developer_account import ObservedAccount, admin_of, is_account, work_for_account
from domain.threescale.developer_credentials import password_of
from domain.threescale.developer_user import ObservedUser, is_user, work_for_user
from domain.threescale.digests import created
from domain.threescale.found import FoundAccount, FoundApplication, FoundPlan, FoundUser, answers_of
from domain.threescale.holders import Holder
from domain.threescale.remote_object import One
from domain.threescale.resources import Application, DeveloperAccount, DeveloperUser, Product
from domain.threescale.wakes import users_of_account


class AccountSubject(SingleSubject[DeveloperAccount, FoundAccount]):
    """A DeveloperAccount."""

    decide = staticmethod(work_for_account)
    item = FoundAccount
    wrapper: ClassVar[Resource] = Resource.ACCOUNT

    def __init__(self, resource: DeveloperAccount, view: View, secrets: Secrets) -> None:
        super().__init__(resource, view, secrets)
        self._users: tuple[DeveloperUser, ...] = ()
        self._keys: tuple[SecretKey, ...] = ()

    async def gather(self) -> None:
        """Tenant; users, and the password of the one with whom it may be signed up."""
        account = self.resource
        await self.find_tenant()
        self._users = self.view.named(DeveloperUser, users_of_account(self.namespace, account.metadata.name))
        admin = admin_of(account, self._users, self.provider.url)
        self._keys = await self.secrets.there([password_of(admin)]) if admin else ()

    def observed(self) -> ObservedAccount:
        """What its decision sees."""
        return ObservedAccount(
            account=self.resource,
            provider=self.provider,
            users=self._users,
            holders=self.holders(self.siblings()),
            secrets=self._keys,
            found=self.found,
        )

    def is_it(self, found: FoundAccount) -> bool:
        """By our mark and the organisation's name."""
        return is_account(found, self.resource)


class UserSubject(SingleSubject[DeveloperUser, FoundUser]):
    """A DeveloperUser."""

    decide = staticmethod(work_for_user)
    item = FoundUser
    wrapper: ClassVar[Resource] = Resource.USER

    def __init__(self, resource: DeveloperUser, view: View, secrets: Secrets) -> None:
        super().__init__(resource, view, secrets)
        self._account: DeveloperAccount | None = None
        self._keys: tuple[SecretKey, ...] = ()

    async def gather(self) -> None:
        """Tenant, account, password."""
        user = self.resource
        self.provider = await self.secrets.account(user, user.spec.provider_account_ref)
        self._account = self.view.get(DeveloperAccount, self.namespace, user.spec.developer_account_ref.name)
        self._keys = await self.secrets.there([password_of(user)])

    def observed(self) -> ObservedUser:
        """What its decision sees."""
        return ObservedUser(
            user=self.resource,
            provider=self.provider,
            account=self._account,
            holders=self.holders(self._siblings()),
            secrets=self._keys,
            found=self.found,
        )

    def _siblings(self) -> tuple[DeveloperUser, ...]:
        account = self.resource.spec.developer_account_ref.name
        return self.view.named(DeveloperUser, users_of_account(self.namespace, account), heeded=False)

    def is_it(self, found: FoundUser) -> bool:
        """By name and address."""
        return is_user(found, self.resource)


class ApplicationSubject(SingleSubject[Application, FoundApplication]):
    """An Application; of what 3scale has, the product's plans are looked at too."""

    decide = staticmethod(work_for_application)
    item = FoundApplication
    wrapper: ClassVar[Resource] = Resource.APPLICATION

    def __init__(self, resource: Application, view: View, secrets: Secrets) -> None:
        super().__init__(resource, view, secrets)
        self._account: DeveloperAccount | None = None
        self._product: Product | None = None
        self._keys: tuple[SecretKey, ...] = ()
        self._listed: tuple[FoundApplication, ...] = ()
        self._holders: tuple[Holder, ...] = ()
        self._plans: tuple[FoundPlan, ...] | None = None

    async def gather(self) -> None:
        """Account, its tenant, product, credentials."""
        application, spec = self.resource, self.resource.spec
        self._account = self.view.get(DeveloperAccount, self.namespace, spec.account_cr.name)
        self._product = self.view.get(Product, self.namespace, spec.product_cr.name)
        reference = self._account.spec.provider_account_ref if self._account else None
        self.provider = await self.secrets.account(application, reference)
        wanted = credentials(application, self._product).values() if self._product else ()
        self._keys = await self.secrets.there(wanted)
        self._holders = self._others()

    def observed(self) -> ObservedApplication:
        """What its decision sees."""
        return ObservedApplication(
            application=self.resource,
            provider=self.provider,
            account=self._account,
            product=self._product,
            holders=self._holders,
            secrets=self._keys,
            found=self.found,
            listed=self._listed,
            plans=self._plans,
        )

    def read(self, read: Read, answer: object) -> None:
        """It, those among which it may be, or the product's plans."""
        listed = () if read.of else answers_of(read.resource.value, answer)
        if read.resource is Resource.PLAN:
            self._plans = tuple(FoundPlan.model_validate(each) for each in listed)
            return
        self._listed = tuple(FoundApplication.model_validate(each) for each in listed)
        self._holders = self._others()
        super().read(read, answer)

    def forget(self) -> None:
        """It is looked for again, and the plans are read again."""
        self.found, self._listed, self._plans = One(), (), None

    def is_it(self, found: FoundApplication) -> bool:
        """By the creation that it has noted, unless it is another's."""
        return is_application(found, created(self.resource.metadata), (each.id for each in self._holders))

    def _others(self) -> tuple[Holder, ...]:
        account = f"DeveloperAccount/{self.namespace}/{self.resource.spec.account_cr.name}"
        others = self.view.referring(Application, account, heeded=False)
        self.view.heeded(each for each in others if self._is_alike(each))
        return self.holders(others)

    def _is_alike(self, other: Application) -> bool:
        """Whether what is made for the other may be taken for this one's: then its id is news."""
        mine, its = self.resource, other.spec
        wants_the_same = (its.name, its.product_cr.name) == (mine.spec.name, mine.spec.product_cr.name)
        return wants_the_same and other.metadata.uid != mine.metadata.uid
