"""The lifecycle of a ProxyConfigPromote: a product's gateway configuration is promoted to staging or production, once.

    waits for the product ─► deploy to staging ─► read the newest versions ─(production)─► promote ─► Ready ─► (deleted)

A product that Perdure has synced is in staging already, so a promotion with nothing to do succeeds; the replaced
operator reported it as a failure. What 3scale refuses is shown and tried again. A Ready promotion never runs again.
"""

from __future__ import annotations

from datetime import datetime

from domain.model import Model
from domain.threescale.calls import Read, Resource, Write
from domain.threescale.conditions import INVALID, READY, Standing
from domain.threescale.product_sync import Sync
from domain.threescale.production import PRODUCTION, SANDBOX, looks_at_configs, newest_after, promoted, promotion
from domain.threescale.providers import NoAccount, ProviderAccount, known_at
from domain.threescale.references import usable
from domain.threescale.resources import Product, ProxyConfigPromote
from domain.threescale.work import (
    Blocker,
    Observed,
    Phase,
    Work,
    as_refused,
    attempted,
    blocked,
    fine,
    is_true,
    without_account,
)

NO_PRODUCT = "product not found"
# Clients of the replaced operator take a promotion to staging that fails with exactly this for done.
NOTHING_FOR_STAGING = (
    '[]: Invalid value: "": cannot promote to staging as no product changes detected. Delete this proxyConfigPromote '
    "CR, then introduce changes to configuration, and then create a new proxyConfigPromote CR"
)


class FoundConfigs(Model):
    """What is known of the product's configurations: the newest version of each environment, 0 where there is none."""

    deployed: bool = False
    newest: dict[str, int] = {}


class ObservedPromotion(Observed):
    """What one decision sees; `provider` is the product's tenant."""

    promotion: ProxyConfigPromote
    provider: ProviderAccount | NoAccount
    product: Product | None = None
    found: FoundConfigs = FoundConfigs()


def work_for_promotion(observed: ObservedPromotion, now: datetime) -> Work:
    """What to do now for a ProxyConfigPromote that exists."""
    once, product = observed.promotion, observed.product
    if once.metadata.deleting:
        return Work(phase=Phase.GONE, why="it owns nothing in 3scale")
    if is_true(once.status.conditions, READY):
        return Work(phase=Phase.SYNCED, why="done", delete=bool(once.spec.delete_cr))
    if product is None:
        return blocked(once, _without_product(once), now, {"product_id": NO_PRODUCT})
    service_id = product.status.product_id or 0
    fields: dict[str, object] = {"product_id": str(service_id) if service_id else None}
    if isinstance(observed.provider, NoAccount):
        return without_account(once, observed.provider, now)
    blocker = _blocker(once, product, observed.provider)
    if blocker is not None:
        return blocked(once, blocker, now, fields)
    whole = sync_promotion(once, service_id, observed.found)
    work, blocking = attempted(whole, observed.refusals, now)
    if work is not None:
        return work
    newest = observed.found.newest
    fields["latest_staging_version"] = newest.get(SANDBOX) or None
    fields["latest_production_version"] = newest.get(PRODUCTION) or None
    if blocking:
        return as_refused(once, blocking, now, fields)
    if whole.missing:
        return blocked(once, _nothing_deployed(once, product), now, fields)
    return fine(once, now, fields, why="promoted")


def sync_promotion(once: ProxyConfigPromote, service_id: int, found: FoundConfigs) -> Sync:
    """What to read or write now; without a backend 3scale deploys nothing, and staging is `missing`."""
    if not found.deployed:
        path = f"services/{service_id}/proxy/deploy"
        return Sync(writes=(Write(resource=Resource.PROXY, method="POST", path=path),))
    reads = tuple(looks_at_configs(service_id, found.newest))
    if reads:
        return Sync(reads=reads)
    if not found.newest[SANDBOX]:
        return Sync(missing=(SANDBOX,))
    return Sync(writes=tuple(promotion(service_id, found.newest)) if once.spec.production else ())


def read_configs(found: FoundConfigs, read: Read, answer: object) -> FoundConfigs:
    """What is known after a read; None as the answer stands for no version."""
    return found.model_copy(update={"newest": newest_after(found.newest, read, answer)})


def wrote_configs(found: FoundConfigs, write: Write) -> FoundConfigs:
    """What is known after a write: a promotion takes the version along."""
    if write.resource is Resource.PROXY:
        return FoundConfigs(deployed=True)
    return found.model_copy(update={"newest": promoted(found.newest)})


def _waits_for(once: ProxyConfigPromote) -> tuple[str, ...]:
    return (f"Product/{once.metadata.namespace}/{once.spec.product_cr_name}",)


def _without_product(once: ProxyConfigPromote) -> Blocker:
    return Blocker(standing=Standing.WAITING, message=NO_PRODUCT, waits_for=_waits_for(once))


def _blocker(once: ProxyConfigPromote, product: Product, provider: ProviderAccount) -> Blocker | None:
    """A product that changes is promoted when it has been synced, not half of it."""
    if is_true(product.status.conditions, INVALID):
        message = f"product CR {product.metadata.name} is invalid"
        return Blocker(standing=Standing.INVALID, message=message, waits_for=_waits_for(once))
    status = product.status
    there = known_at(provider.url, status.provider_account_host, status.product_id)  # else it is on its way there
    current = there and (status.observed_generation or 0) >= product.metadata.generation
    if usable(product.status.conditions) and current and not product.metadata.deleting:
        return None if product.spec.backend_usages else _nothing_deployed(once, product)
    return Blocker(standing=Standing.WAITING, message="product CR is not ready", waits_for=_waits_for(once))


def _nothing_deployed(once: ProxyConfigPromote, product: Product) -> Blocker:
    name = product.metadata.name
    for_production = f"nothing to promote: 3scale deploys Product {name} when it uses a backend"
    message = for_production if once.spec.production else NOTHING_FOR_STAGING
    return Blocker(standing=Standing.WAITING, message=message, waits_for=_waits_for(once))
