"""ProxyConfigPromote in a pass: a promotion of a product's gateway configuration, done once."""

from __future__ import annotations

from activities.threescale.known import View
from activities.threescale.secrets import Secrets
from activities.threescale.subjects import Subject
from domain.threescale.calls import Read, Write
from domain.threescale.promotion import (
    FoundConfigs,
    ObservedPromotion,
    read_configs,
    work_for_promotion,
    wrote_configs,
)
from domain.threescale.providers import NoAccount
from domain.threescale.resources import Product, ProxyConfigPromote


class PromotionSubject(Subject[ProxyConfigPromote]):
    """A ProxyConfigPromote."""

    decide = staticmethod(work_for_promotion)

    def __init__(self, resource: ProxyConfigPromote, view: View, secrets: Secrets) -> None:
        super().__init__(resource, view, secrets)
        self._product: Product | None = None
        self._found = FoundConfigs()

    async def gather(self) -> None:
        """The product and its tenant."""
        self._product = self.view.get(Product, self.namespace, self.resource.spec.product_cr_name)
        if self._product is None:
            self.provider = NoAccount(why="its Product does not exist", waits_for="")
            return
        self.provider = await self.secrets.account(self._product, self._product.spec.provider_account_ref)

    def observed(self) -> ObservedPromotion:
        """What its decision sees."""
        return ObservedPromotion(
            promotion=self.resource,
            provider=self.provider,
            product=self._product,
            found=self._found,
        )

    def read(self, read: Read, answer: object) -> None:
        """The newest version of one environment."""
        self._found = read_configs(self._found, read, answer)

    def wrote(self, write: Write, answer: object) -> None:
        """It is deployed, or promoted."""
        self._found = wrote_configs(self._found, write)

    def forget(self) -> None:
        """The versions are read again, and staging is deployed again, which changes nothing by itself."""
        self._found = FoundConfigs()
