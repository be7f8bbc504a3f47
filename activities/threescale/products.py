from __future__ import annotations

from activities.threescale.subjects import Subject
from domain.threescale.backend import ObservedBackend
from domain.threescale.cascading_deletion import takes_along
from domain.threescale.gateway_configuration import secrets_of
from domain.threescale.product import ObservedProduct
from domain.threescale.resources import Application, Backend, Product


class ProductSubject(Subject[Product]):
    async def observed(self) -> ObservedProduct:
        meta, spec = self.resource.metadata, self.resource.spec
        await self.find_tenant()
        used = (self.cache.named(Backend, f"Backend/{self.namespace}/{name}") for name in sorted(spec.backend_usages))
        backends = {each.metadata.uid: each for several in used for each in several}
        applications: tuple[Application, ...] = ()
        if meta.deleting and takes_along(meta):
            applications = self.cache.referring(Application, f"Product/{self.namespace}/{meta.name}")
        siblings = self.siblings()
        return ObservedProduct(
            **self.common(),
            backends=tuple(backends.values()),
            siblings=tuple(each.metadata for each in siblings),
            holders=self.holders(siblings),
            applications=applications,
            secrets=await self.secrets.texts(secrets_of(spec, self.namespace)),
        )


class BackendSubject(Subject[Backend]):
    async def observed(self) -> ObservedBackend:
        name, deleting = self.resource.spec.system_name, self.resource.metadata.deleting
        await self.find_tenant()
        siblings = self.siblings()
        return ObservedBackend(
            **self.common(),
            products=self.cache.referring(Product, f"Backend/{self.namespace}/{name}") if name and deleting else (),
            siblings=tuple(each.metadata for each in siblings),
            holders=self.holders(siblings),
        )
