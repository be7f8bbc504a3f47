"""The lifecycle of a ProxyConfigPromote: a product's gateway configuration goes to staging, or on to production, once.

    waits for the product ─► deploy to staging ─► read the newest versions ─(production)─► promote ─► Ready ─► (deleted)

A product that Perdure has synced is in staging already, so that a promotion that finds nothing to do has succeeded;
the replaced operator told it as a failure. What 3scale refuses is told and tried again. Once it is done it never runs
again, whatever happens to the product.
"""

from __future__ import annotations

from datetime import datetime

from domain.model import Model
from domain.refusal import Refusal
from domain.schema import Json
from domain.threescale.calls import Read, Resource, Write
from domain.threescale.conditions import INVALID, READY, Standing
from domain.threescale.found import answer_of
from domain.threescale.product_sync import Sync
from domain.threescale.providers import NoAccount, ProviderAccount
from domain.threescale.references import usable
from domain.threescale.resources import Product, ProxyConfigPromote
from domain.threescale.work import (
    Hindrance,
    Phase,
    Work,
    as_refused,
    attempted,
    fine,
    hindered,
    is_true,
    without_account,
)

NO_PRODUCT = "product not found"
SANDBOX, PRODUCTION = "sandbox", "production"


class FoundConfigs(Model):
    """What is known of the product's configurations: the newest version of each environment, 0 where there is none."""

    deployed: bool = False
    newest: dict[str, int] = {}


class ObservedPromotion(Model):
    """What one decision sees; `provider` is the product's tenant."""

    promotion: ProxyConfigPromote
    provider: ProviderAccount | NoAccount
    product: Product | None = None
    found: FoundConfigs = FoundConfigs()
    refusals: dict[str, Refusal] = {}


def work_for_promotion(observed: ObservedPromotion, now: datetime) -> Work:
    """What to do now for a ProxyConfigPromote that exists."""
    promotion, product = observed.promotion, observed.product
    if promotion.metadata.deleting:
        return Work(phase=Phase.GONE, why="nothing is its own")
    if is_true(promotion.status.conditions, READY):
        return Work(phase=Phase.SYNCED, why="done", delete=bool(promotion.spec.delete_cr))
    if product is None or not product.status.product_id:
        return hindered(promotion, _without_product(promotion), now, {"product_id": NO_PRODUCT})
    fields: dict[str, object] = {"product_id": str(product.status.product_id)}
    if isinstance(observed.provider, NoAccount):
        return without_account(promotion, observed.provider, now)
    hindrance = _hindrance(promotion, product)
    if hindrance is not None:
        return hindered(promotion, hindrance, now, fields)
    whole = sync_promotion(promotion, product.status.product_id, observed.found)
    work, hindering = attempted(whole, observed.refusals, now)
    if work is not None:
        return work
    newest = observed.found.newest
    fields["latest_staging_version"] = newest.get(SANDBOX) or None
    fields["latest_production_version"] = newest.get(PRODUCTION) or None
    if hindering:
        return as_refused(promotion, hindering, now, fields)
    if whole.missing:
        return hindered(promotion, _nothing_deployed(promotion, product), now, fields)
    return fine(promotion, now, fields, {}, "promoted")


def sync_promotion(promotion: ProxyConfigPromote, service_id: int, found: FoundConfigs) -> Sync:
    """What to read or write now; without a backend 3scale deploys nothing, and staging is `missing`."""
    path = f"services/{service_id}/proxy"
    if not found.deployed:
        return Sync(writes=(Write(resource=Resource.PROXY, method="POST", path=f"{path}/deploy"),))
    reads = tuple(
        Read(resource=Resource.CONFIG, path=f"{path}/configs/{environment}/latest")
        for environment in (SANDBOX, PRODUCTION)
        if environment not in found.newest
    )
    if reads:
        return Sync(reads=reads)
    staging = found.newest[SANDBOX]
    if not staging:
        return Sync(missing=(SANDBOX,))
    if not promotion.spec.production or found.newest[PRODUCTION] == staging:
        return Sync()
    fields: dict[str, Json] = {"to": PRODUCTION}
    where = f"{path}/configs/{SANDBOX}/{staging}/promote"
    return Sync(writes=(Write(resource=Resource.CONFIG, method="POST", path=where, fields=fields),))


def read_configs(found: FoundConfigs, read: Read, answer: object) -> FoundConfigs:
    """What is known after a read; None as the answer stands for no version."""
    environment = read.path.split("/")[-2]
    version = answer_of(read.resource.value, answer).get("version", 0)
    newest = {**found.newest, environment: version if isinstance(version, int) else 0}
    return found.model_copy(update={"newest": newest})


def wrote_configs(found: FoundConfigs, write: Write) -> FoundConfigs:
    """What is known after a write: a promotion takes the version along."""
    if write.resource is Resource.PROXY:
        return FoundConfigs(deployed=True)
    return found.model_copy(update={"newest": {**found.newest, PRODUCTION: found.newest[SANDBOX]}})


def _waits_for(promotion: ProxyConfigPromote) -> tuple[str, ...]:
    return (f"Product/{promotion.metadata.namespace}/{promotion.spec.product_cr_name}",)


def _without_product(promotion: ProxyConfigPromote) -> Hindrance:
    return Hindrance(standing=Standing.WAITING, message=NO_PRODUCT, waits_for=_waits_for(promotion))


def _hindrance(promotion: ProxyConfigPromote, product: Product) -> Hindrance | None:
    """A product that changes is promoted when it has been synced, not half of it."""
    if is_true(product.status.conditions, INVALID):
        message = f"product CR {product.metadata.name} is invalid"
        return Hindrance(standing=Standing.INVALID, message=message, waits_for=_waits_for(promotion))
    current = (product.status.observed_generation or 0) >= product.metadata.generation
    if usable(product.status.conditions) and current and not product.metadata.deleting:
        return None if product.spec.backend_usages else _nothing_deployed(promotion, product)
    return Hindrance(standing=Standing.WAITING, message="product CR is not ready", waits_for=_waits_for(promotion))


def _nothing_deployed(promotion: ProxyConfigPromote, product: Product) -> Hindrance:
    message = f"nothing to promote: 3scale deploys Product {product.metadata.name} when it uses a backend"
    return Hindrance(standing=Standing.WAITING, message=message, waits_for=_waits_for(promotion))
