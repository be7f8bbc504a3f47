from __future__ import annotations

from activities.threescale.subjects import Subject
from domain.threescale.backend import ObservedBackend
from domain.threescale.cascading_deletion import takes_along
from domain.threescale.config_promotion import ObservedPromotion
from domain.threescale.issuer_and_policy_secrets import secrets_of
from domain.threescale.product import ObservedProduct
from domain.threescale.provider_account import NoAccount
from domain.threescale.resources import Application, Backend, Product, ProxyConfigPromote


class ProductSubject(Subject[Product]):
    async def observed(self) -> ObservedProduct:
        meta, spec = self.resource.metadata, self.resource.spec
        await self.find_tenant()
        used = (self.cache.named(Backend, f"Backend/{self.namespace}/{name}") for name in sorted(spec.backend_usages))
        backends = {each.metadata.uid: each for several in used for each in several}
        applications: tuple[Application, ...] = ()
        if meta.deleting and takes_along(meta):
            applications = self.cache.referring(Application, f"Product/{self.namespace}/{meta.name}")
        return ObservedProduct(
            **await self.common(),
            siblings=self.siblings(),
            backends=tuple(backends.values()),
            applications=applications,
            secrets=() if meta.deleting else await self.secrets.texts(secrets_of(spec, self.namespace)),
        )


class BackendSubject(Subject[Backend]):
    async def observed(self) -> ObservedBackend:
        name, deleting = self.resource.spec.system_name, self.resource.metadata.deleting
        await self.find_tenant()
        return ObservedBackend(
            **await self.common(),
            siblings=self.siblings(),
            products=self.cache.referring(Product, f"Backend/{self.namespace}/{name}") if name and deleting else (),
        )


class PromotionSubject(Subject[ProxyConfigPromote]):
    async def observed(self) -> ObservedPromotion:
        product = self.cache.get(Product, self.namespace, self.resource.spec.product_cr_name)
        self.provider = NoAccount(why="its Product does not exist", waits_for="")
        if product is not None:
            await self.find_account(product.spec.tenant_secret)
        return ObservedPromotion(**await self.common(), product=product)
