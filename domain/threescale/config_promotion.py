"""The lifecycle of a ProxyConfigPromote: promote a product's gateway configuration once, to staging or production.

    waits for the product ─► deploy to staging ─► read the newest versions ─(production)─► promote ─► Ready ─► (deleted)

Perdure deploys a product to staging when it syncs the product. A promotion that finds nothing new therefore succeeds;
the replaced operator reported a failure.
"""

from __future__ import annotations

from datetime import datetime
from typing import Self

from domain.decision import Decision
from domain.model import Model
from domain.threescale.auto_promotion import PRODUCTION, SANDBOX, newest_after, promoted, promotion, reads_of_configs
from domain.threescale.calls import Read, Resource, Sync, Write
from domain.threescale.conditions import INVALID, READY
from domain.threescale.observed import Blocker, Observed, Phase, acts, invalid, is_true, waiting
from domain.threescale.provider_account import ProviderAccount, known_at
from domain.threescale.resources import Product, ProxyConfigPromote
from domain.threescale.usable_referents import usable

NO_PRODUCT = "product not found"
# Clients of the replaced operator treat a staging promotion that fails with exactly this message as done.
NOTHING_FOR_STAGING = (
    '[]: Invalid value: "": cannot promote to staging as no product changes detected. Delete this proxyConfigPromote '
    "CR, then introduce changes to configuration, and then create a new proxyConfigPromote CR"
)


class FoundConfigs(Model):
    """`newest` has the newest configuration version of each environment; 0 if the environment has none."""

    deployed: bool = False
    newest: dict[str, int] = {}


class ObservedPromotion(Observed):
    resource: ProxyConfigPromote
    product: Product | None = None
    found: FoundConfigs = FoundConfigs()

    def decide(self, now: datetime) -> Decision:
        once = self.resource
        if once.metadata.deleting:
            return acts(Phase.GONE, "it owns nothing in 3scale")
        if is_true(once.status.conditions, READY):
            return self.deleted("done", Phase.SYNCED) if once.spec.delete_cr else acts(Phase.SYNCED, "done")
        if self.product is None:
            return self.blocked(waiting(NO_PRODUCT, *_waits_for(once)), now, {"product_id": NO_PRODUCT})
        return self.without_account(now) or _decided(self, self.product, now)

    def read(self, read: Read, body: object) -> Self:
        return self.beside({"found": read_configs(self.found, read, body)})

    def wrote(self, write: Write, body: object) -> Self:
        return self.beside({"found": wrote_configs(self.found, write)})


def _decided(observed: ObservedPromotion, product: Product, now: datetime) -> Decision:
    once, provider = observed.resource, observed.provider
    assert isinstance(provider, ProviderAccount)  # noqa: S101 - decided before
    service_id = product.status.product_id or 0
    fields: dict[str, object] = {"product_id": str(service_id) if service_id else None}
    blocker = _blocker(once, product, provider)
    if blocker is not None:
        return observed.blocked(blocker, now, fields)
    whole = sync_promotion(once, service_id, observed.found)
    decision, refused = observed.attempted(whole, now)
    if decision is not None:
        return decision
    newest = observed.found.newest
    fields["latest_staging_version"] = newest.get(SANDBOX) or None
    fields["latest_production_version"] = newest.get(PRODUCTION) or None
    if refused:
        return observed.as_refused(refused, now, fields)
    if whole.missing:
        return observed.blocked(_nothing_deployed(once, product), now, fields)
    return observed.fine(now, fields, why="promoted")


def sync_promotion(once: ProxyConfigPromote, service_id: int, found: FoundConfigs) -> Sync:
    """`Sync.missing` is `("sandbox",)` if 3scale deployed nothing to staging, because the product has no backends."""
    if not found.deployed:
        path = f"services/{service_id}/proxy/deploy"
        return Sync(writes=(Write(resource=Resource.PROXY, method="POST", path=path),))
    reads = tuple(reads_of_configs(service_id, found.newest))
    if reads:
        return Sync(reads=reads)
    if not found.newest[SANDBOX]:
        return Sync(missing=(SANDBOX,))
    return Sync(writes=tuple(promotion(service_id, found.newest)) if once.spec.production else ())


def read_configs(found: FoundConfigs, read: Read, answer: object) -> FoundConfigs:
    return found.model_copy(update={"newest": newest_after(found.newest, read, answer)})


def wrote_configs(found: FoundConfigs, write: Write) -> FoundConfigs:
    if write.resource is Resource.PROXY:
        return FoundConfigs(deployed=True)
    return found.model_copy(update={"newest": promoted(found.newest)})


def _waits_for(once: ProxyConfigPromote) -> tuple[str, ...]:
    return (f"Product/{once.metadata.namespace}/{once.spec.product_cr_name}",)


def _blocker(once: ProxyConfigPromote, product: Product, provider: ProviderAccount) -> Blocker | None:
    if is_true(product.status.conditions, INVALID):
        return invalid(f"product CR {product.metadata.name} is invalid", *_waits_for(once))
    status = product.status
    # A product that changes is promoted only after its sync. `there` is 0 while the product moves to this tenant.
    there = known_at(provider.url, status.provider_account_host, status.product_id)
    current = there and (status.observed_generation or 0) >= product.metadata.generation
    if usable(product.status.conditions) and current and not product.metadata.deleting:
        return None if product.spec.backend_usages else _nothing_deployed(once, product)
    return waiting("product CR is not ready", *_waits_for(once))


def _nothing_deployed(once: ProxyConfigPromote, product: Product) -> Blocker:
    name = product.metadata.name
    for_production = f"nothing to promote: 3scale does not deploy Product {name} until the Product uses a backend"
    return waiting(for_production if once.spec.production else NOTHING_FOR_STAGING, *_waits_for(once))
