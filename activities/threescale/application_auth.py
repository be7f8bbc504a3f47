"""ApplicationAuth in a pass: credentials of an application, set once."""

from __future__ import annotations

import secrets as randomness
from typing import ClassVar

from activities.threescale.known import View
from activities.threescale.secrets import Secrets
from activities.threescale.subjects import SingleSubject
from domain.threescale.application_auth import APPLICATION_ID, ObservedAuth, SecretContent, work_for_auth
from domain.threescale.calls import Resource, Write
from domain.threescale.found import FoundApplication
from domain.threescale.remote_object import One
from domain.threescale.resources import Application, ApplicationAuth, DeveloperAccount, Product
from domain.threescale.work import Effect, SecretWrite

_KEY_BYTES = 16  # as many as 3scale's own keys have


class AuthSubject(SingleSubject[ApplicationAuth, FoundApplication]):
    """An ApplicationAuth."""

    decide = staticmethod(work_for_auth)
    item = FoundApplication
    wrapper: ClassVar[Resource] = Resource.APPLICATION

    def __init__(self, resource: ApplicationAuth, view: View, secrets: Secrets) -> None:
        super().__init__(resource, view, secrets)
        self._application: Application | None = None
        self._account: DeveloperAccount | None = None
        self._product: Product | None = None
        self._secret: SecretContent | None = None
        self._written: list[str] = []

    async def gather(self) -> None:
        """Tenant; the application with its account and product; the Secret."""
        spec = self.resource.spec
        self.provider = await self.secrets.account(self.resource, spec.provider_account_ref)
        application = self.view.get(Application, self.namespace, spec.application_cr_name)
        self._application = application
        if application is not None:
            named = application.spec
            self._account = self.view.get(DeveloperAccount, self.namespace, named.account_cr.name)
            self._product = self.view.get(Product, self.namespace, named.product_cr.name)
        await self._look_into_secret()

    async def _look_into_secret(self) -> None:
        name = self.resource.spec.auth_secret_ref.name
        content = await self.secrets.content(self.namespace, name)
        if content is None:
            self._secret = None
            return
        filled = tuple(sorted(key for key, value in content.values.items() if value))
        self._secret = SecretContent(
            name=name,
            there=tuple(sorted(content.values)),
            filled=filled,
            application_id=content.values.get(APPLICATION_ID, ""),
        )

    def observed(self) -> ObservedAuth:
        """What its decision sees."""
        return ObservedAuth(
            auth=self.resource,
            provider=self.provider,
            application=self._application,
            account=self._account,
            product=self._product,
            secret=self._secret,
            found=self.found,
            written=tuple(self._written),
        )

    def wrote(self, write: Write, answer: object) -> None:
        """One of the credentials is set; the application is known all the same."""
        self._written.append(write.slot)

    def forget(self) -> None:
        """The application is read again, and the credentials are set again, which changes nothing."""
        self.found, self._written = One(), []

    async def carry_out(self, effect: Effect) -> None:
        """Generated values, and the application's id, go into the Secret."""
        if isinstance(effect, SecretWrite):
            generated = {key: randomness.token_hex(_KEY_BYTES) for key in effect.generated}
            name = self.resource.spec.auth_secret_ref.name
            await self.secrets.write(self.namespace, name, {**generated, **effect.values})
            await self._look_into_secret()

    def is_it(self, found: FoundApplication) -> bool:
        """It is read by its id only."""
        return False
