"""Product and Backend in a pass: what an API is, and what stands behind it."""

from __future__ import annotations

from activities.threescale.known import View
from activities.threescale.secrets import Secrets
from activities.threescale.subjects import Subject
from domain.threescale.apply_response import read_backend, read_product, wrote_backend, wrote_product
from domain.threescale.backend import ObservedBackend, work_for_backend
from domain.threescale.belonging import takes_along
from domain.threescale.calls import Read, Write
from domain.threescale.digests import digests_of
from domain.threescale.found import FoundBackend, FoundProduct
from domain.threescale.gateway import secrets_of
from domain.threescale.product import ObservedProduct, SecretText, work_for_product
from domain.threescale.resources import Application, Backend, Product


class ProductSubject(Subject[Product]):
    """A Product."""

    decide = staticmethod(work_for_product)

    def __init__(self, resource: Product, view: View, secrets: Secrets) -> None:
        super().__init__(resource, view, secrets)
        self._found = FoundProduct()
        self._backends: tuple[Backend, ...] = ()
        self._texts: tuple[SecretText, ...] = ()

    async def gather(self) -> None:
        """Tenant, the backends that it uses, Secrets that it draws on."""
        spec = self.resource.spec
        await self.find_tenant()
        used = (self.view.named(Backend, f"Backend/{self.namespace}/{name}") for name in sorted(spec.backend_usages))
        found = {each.metadata.uid: each for several in used for each in several}
        self._backends = tuple(found.values())
        self._texts = await self.secrets.texts(secrets_of(spec, self.namespace))

    def observed(self) -> ObservedProduct:
        """What its decision sees."""
        siblings = self.siblings()
        return ObservedProduct(
            product=self.resource,
            account=self.provider,
            backends=self._backends,
            siblings=tuple(each.metadata for each in siblings),
            holders=self.holders(siblings),
            applications=self._taken_along(),
            secrets=self._texts,
            found=self._found,
        )

    def _taken_along(self) -> tuple[Application, ...]:
        meta = self.resource.metadata
        if not meta.deleting or not takes_along(meta):
            return ()
        return self.view.referring(Application, f"Product/{self.namespace}/{meta.name}")

    def read(self, read: Read, answer: object) -> None:
        """The product, or a part of it."""
        self._found = read_product(self._found, read, answer, self.resource.spec.system_name)

    def wrote(self, write: Write, answer: object) -> None:
        """The product, or a part of it."""
        self._found = wrote_product(self._found, write, answer)

    def forget(self) -> None:
        """It is read again, with all its parts."""
        self._found = FoundProduct()

    def known(self) -> object:
        """The product, and what its backends were then: their metrics are part of its plans."""
        # Others may deploy and promote meanwhile: the versions are read again.
        kept = self._found.model_copy(update={"configs": {}})
        return (kept, self._behind()) if kept.service is not None else None

    def recall(self, known: object) -> None:
        """The product, if its backends are what they were."""
        match known:
            case (FoundProduct() as found, behind) if behind == self._behind():
                self._found = found

    def _behind(self) -> dict[str, str | None]:
        return {each.metadata.uid: digests_of(each).synced for each in self._backends}


class BackendSubject(Subject[Backend]):
    """A Backend."""

    decide = staticmethod(work_for_backend)

    def __init__(self, resource: Backend, view: View, secrets: Secrets) -> None:
        super().__init__(resource, view, secrets)
        self._found = FoundBackend()

    async def gather(self) -> None:
        """Tenant; the products that use it are looked for with each decision."""
        await self.find_tenant()

    def observed(self) -> ObservedBackend:
        """What its decision sees."""
        name = self.resource.spec.system_name
        deleting = self.resource.metadata.deleting
        users = self.view.referring(Product, f"Backend/{self.namespace}/{name}") if name and deleting else ()
        siblings = self.siblings()
        return ObservedBackend(
            backend=self.resource,
            account=self.provider,
            products=users,
            siblings=tuple(each.metadata for each in siblings),
            holders=self.holders(siblings),
            found=self._found,
        )

    def read(self, read: Read, answer: object) -> None:
        """The backend, or a part of it."""
        self._found = read_backend(self._found, read, answer, self.resource.spec.system_name)

    def wrote(self, write: Write, answer: object) -> None:
        """The backend, or a part of it."""
        self._found = wrote_backend(self._found, write, answer)

    def forget(self) -> None:
        """It is read again, with all its parts."""
        self._found = FoundBackend()

    def known(self) -> object:
        """The backend."""
        return self._found if self._found.backend is not None else None

    def recall(self, known: object) -> None:
        """The backend."""
        if isinstance(known, FoundBackend):
            self._found = known
