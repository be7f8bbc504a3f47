"""ProxyConfigPromote: a single promotion of a product's gateway configuration."""

from __future__ import annotations

from activities.threescale.subjects import Subject
from domain.threescale.config_promotion import ObservedPromotion
from domain.threescale.provider_account import NoAccount
from domain.threescale.resources import Product, ProxyConfigPromote


class PromotionSubject(Subject[ProxyConfigPromote]):
    async def observed(self) -> ObservedPromotion:
        product = self.cache.get(Product, self.namespace, self.resource.spec.product_cr_name)
        self.provider = NoAccount(why="its Product does not exist", waits_for="")
        if product is not None:
            self.provider = await self.secrets.account(product, product.spec.provider_account_ref)
        return ObservedPromotion(**self.common(), product=product)
