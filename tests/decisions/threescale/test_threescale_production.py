"""A product that is promoted by itself: when its versions are read, when it is promoted, and what waits for that."""

from __future__ import annotations

from typing import Any

import pytest
from threescale_objects import (
    APICAST,
    HITS,
    Requested,
    after,
    backend,
    decided,
    message,
    product,
    refusal,
    remembers,
    states,
)

from domain.refusal import ErrorType
from domain.threescale.apply_response import read_product, wrote_product
from domain.threescale.auto_promotion import PROMOTE
from domain.threescale.calls import Read, Resource, Sync, Write
from domain.threescale.digests import digests_of
from domain.threescale.observed import Phase
from domain.threescale.product_sync import Wanted, sync_product
from domain.threescale.remote_state import FoundMetric, FoundProduct, FoundService
from domain.threescale.resources import ProductSpec

HITS_FOUND = FoundMetric(id=1, system_name="hits", friendly_name="Hits", unit="hit", description="Number of API hits")
OLD = FoundMetric(id=2, system_name="old", friendly_name="Old", unit="1")
USES: dict[str, Any] = {"backendUsages": {"stock": {"path": "/"}}}
ASKS = {"annotations": {PROMOTE: "true"}}
LOOKS = ["services/5/proxy/configs/sandbox/latest", "services/5/proxy/configs/production/latest"]
ONWARD = "POST services/5/proxy/configs/sandbox/4/promote"


def wanted(*, promote: bool = True, **spec: Any) -> Wanted:
    whole = {"name": "shop", "systemName": "shop", "metrics": {"hits": HITS}, "policies": [APICAST], **USES, **spec}
    used = {"stock": 7} if whole["backendUsages"] else {}
    return Wanted(spec=ProductSpec.model_validate(whole), backends=used, gateway="g", promote=promote)


def found(**parts: Any) -> FoundProduct:
    service = FoundService(id=5, name="shop", system_name="shop", annotations={"managed_by": "operator"})
    usage = {"id": 9, "path": "/", "backend_id": 7}
    lists = {"metrics": (HITS_FOUND,), "rules": (), "usages": (usage,), "plans": (), "chain": (APICAST,)}
    return FoundProduct(
        **{"looked": True, "entry": service, "proxy": {}, "flow": {}, "deployed": "g", **lists, **parts}
    )


def calls(sync: Sync) -> list[str]:
    return [f"{each.method} {each.path}" for each in sync.writes]


def test_versions_are_read_once_staging_is_deployed() -> None:
    before = sync_product(wanted(), found(deployed="other"), 5)
    then = sync_product(wanted(), found(), 5)

    assert (before.reads, calls(before)) == ((), ["POST services/5/proxy/deploy"])
    assert [each.path for each in then.reads] == LOOKS


@pytest.mark.parametrize(
    ("configs", "expected"),
    [
        ({"sandbox": 4, "production": 0}, [ONWARD]),
        ({"sandbox": 4, "production": 3}, [ONWARD]),
        ({"sandbox": 4, "production": 4}, []),
        ({"sandbox": 0, "production": 0}, []),
    ],
    ids=["first", "next", "there already", "nothing deployed"],
)
def test_the_newest_version_goes_to_production_unless_it_is_there(configs: dict[str, int], expected: list[str]) -> None:
    assert calls(sync_product(wanted(), found(configs=configs), 5)) == expected


def test_a_metric_that_production_counts_goes_after_the_promotion() -> None:
    there = found(metrics=(HITS_FOUND, OLD))

    assert calls(sync_product(wanted(), there.model_copy(update={"deployed": "other"}), 5)) == [
        "POST services/5/proxy/deploy"
    ]
    configs = {"sandbox": 4, "production": 3}
    assert calls(sync_product(wanted(), there.model_copy(update={"configs": configs}), 5)) == [
        ONWARD,
        "DELETE services/5/metrics/2",
    ]


def test_a_refused_promotion_holds_back_nothing_else() -> None:
    there = found(metrics=(HITS_FOUND, OLD), configs={"sandbox": 4, "production": 3})

    assert calls(sync_product(wanted(), there, 5, (ONWARD,))) == ["DELETE services/5/metrics/2"]


@pytest.mark.parametrize("desired", [wanted(promote=False), wanted(backendUsages={})], ids=["not asked", "no backend"])
def test_no_product_is_promoted_without_a_request_and_a_configuration(desired: Wanted) -> None:
    usages = found().usages if desired.backends else ()

    assert sync_product(desired, found(usages=usages), 5).done


def test_whatever_deploys_makes_another_version_and_a_promotion_takes_it_along() -> None:
    configs = {"sandbox": 4, "production": 3}
    deploy = Write(resource=Resource.PROXY, method="POST", path="services/5/proxy/deploy", deploys="g")
    onward = Write(resource=Resource.CONFIG, method="POST", path=ONWARD.partition(" ")[2])
    answer = {"proxy_config": {"id": 1, "version": 4, "environment": "production"}}
    read = Read(resource=Resource.CONFIG, path=LOOKS[0])

    assert wrote_product(found(configs=configs), deploy, {"proxy": {}}).configs == {}
    assert wrote_product(found(configs=configs), onward, answer).configs == {"sandbox": 4, "production": 4}
    assert wrote_product(found(configs=configs), onward, answer).deployed == "g"
    assert read_product(found(), read, answer, "shop").configs == {"sandbox": 4}
    assert read_product(found(), read, None, "shop").configs == {"sandbox": 0}


def synced(object_: Any, there: FoundProduct, **more: Any) -> Requested:
    return decided(object_, backends=(backend(),), found=there, **more)


def in_step(**more: Any) -> Any:
    """A Product that remembers all of it, production included."""
    object_ = product(meta=ASKS, product_id=5, **USES)
    first = synced(object_, found(configs={"sandbox": 4, "production": 4}))
    # The object's memory says what the sandbox has: the digest of this very spec.
    gateway = next(each.deploys for each in first.writes if each.deploys)
    there = found(deployed=gateway, configs={"sandbox": 4, "production": 4})
    done = synced(object_, there)
    assert done.phase is Phase.SYNCED
    assert done.status["latestProductionVersion"] == 4
    return after(object_, done.patch, done.status)


def test_the_version_in_production_is_remembered_and_costs_nothing_more() -> None:
    there = in_step()

    assert digests_of(there).production
    assert synced(there, FoundProduct()).idle


def test_a_look_that_is_asked_for_compares_production_too() -> None:
    there = in_step()
    gateway = digests_of(there).production

    assert [each.path for each in synced(there, found(deployed=gateway), look=True).reads] == LOOKS


def test_a_later_request_promotes_and_its_withdrawal_leaves_production_unchanged() -> None:
    plain = after(remembers(in_step(), production=None), {"metadata": {"annotations": {PROMOTE: None}}})
    asks = after(plain, {"metadata": {"annotations": {PROMOTE: "true"}}})
    asks_no_more = after(in_step(), {"metadata": {"annotations": {PROMOTE: None}}})

    assert synced(plain, FoundProduct()).idle
    assert synced(asks, FoundProduct()).reads
    assert synced(asks_no_more, FoundProduct()).idle


def test_a_promotion_that_3scale_refuses_is_reported() -> None:
    there = remembers(in_step(), production=None)
    gateway = digests_of(there).gateway
    refused = {ONWARD: refusal(ErrorType.DENIED, "no promotions today")}
    decision = synced(there, found(deployed=gateway, configs={"sandbox": 4, "production": 3}), refusals=refused)

    assert states(decision.status) == "Failed"
    assert message(decision.status, "Failed") == "no promotions today"
    assert decision.deadline is not None
