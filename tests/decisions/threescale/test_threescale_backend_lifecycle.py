"""What is done for Backends, above all when they shall go while products use them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from threescale_objects import (
    NO_ACCOUNT,
    NOW,
    URL,
    after,
    backend,
    decided,
    message,
    observed,
    product,
    refusal,
    states,
)

from domain.refusal import ErrorType
from domain.threescale.apply_response import read_backend
from domain.threescale.digests import digests_of
from domain.threescale.observed import Phase
from domain.threescale.product import desired_digests
from domain.threescale.remote_state import FoundBackend, FoundBackendApi, FoundMappingRule, FoundMetric
from domain.threescale.resources import Backend

USES: dict[str, Any] = {"backendUsages": {"stock": {"path": "/"}}}


def made(**more: Any) -> FoundBackend:
    api = FoundBackendApi(
        id=7,
        name="stock",
        system_name="stock",
        private_endpoint="https://stock.example.com:443",
        annotations={"managed_by": "operator"},
    )
    hits = FoundMetric(id=1, system_name="hits.7", friendly_name="Hits", unit="hit", description="Number of API hits")
    return FoundBackend(looked=True, entry=api, metrics=(hits,), rules=(), **more)


def going(**more: Any) -> Backend:
    return backend(meta={"deletionTimestamp": NOW.isoformat()}, **more)


def test_a_backend_as_it_shall_be_is_remembered_and_asks_for_nothing_more() -> None:
    first = decided(backend(synced=False), found=made())
    assert states(first.status) == "Synced"
    assert (first.status["backendId"], first.status["providerAccountHost"]) == (7, URL)
    settled = after(backend(synced=False), first.patch, first.status)

    assert decided(settled).idle
    assert decided(after(settled, {"spec": {"privateBaseURL": "https://other.example.com"}})).reads


def test_a_backends_description_that_is_no_more_in_the_spec_goes() -> None:
    described = made().entry.model_copy(update={"description": "What we have"})  # type: ignore[union-attr]
    (change,) = decided(backend(), found=made().model_copy(update={"entry": described})).writes
    assert (change.path, change.fields) == ("backend_apis/7", {"description": ""})

    (creation,) = decided(backend(synced=False), found=FoundBackend(looked=True)).writes
    assert "description" not in creation.fields


def test_an_item_with_the_id_of_the_status_and_another_name_is_left_alone() -> None:
    (look,) = decided(backend()).reads
    answer = {"backend_api": {"id": 7, "system_name": "orders", "name": "Orders"}}
    found = decided(backend(), found=read_backend(FoundBackend(), look, answer, "stock"))

    assert (states(found.status), found.reads, found.writes) == ("Failed Invalid", (), ())
    assert message(found.status, "Invalid") == (
        'spec.systemName: Invalid value: "stock": SystemName is immutable: backend 7 is called orders in 3scale.'
    )


def test_a_backend_without_an_account_is_an_orphan() -> None:
    found = decided(backend(synced=False), provider=NO_ACCOUNT)

    assert states(found.status) == "Failed Orphan"
    assert found.waits_for == ("Secret/shop/threescale-provider-account",)


def test_a_method_that_the_gateway_still_counts_is_reported_and_retried() -> None:
    method = FoundMetric(id=2, system_name="old.7", friendly_name="Old", parent_id=1)
    there = made().model_copy(update={"metrics": (*(made().metrics or ()), method)})
    slot = "DELETE backend_apis/7/metrics/1/methods/2 old"
    assert [each.slot for each in decided(backend(), found=there).writes] == [slot]
    text = "Method is used by the latest gateway configuration and cannot be deleted"
    stuck = decided(backend(), found=there, refusals={slot: refusal(ErrorType.DENIED, text)})

    assert message(stuck.status, "Failed") == text
    assert stuck.deadline == NOW + timedelta(seconds=5)


def test_products_deploy_when_only_that_frees_a_counted_metric() -> None:
    metric = FoundMetric(id=2, system_name="old.7", friendly_name="Old", unit="1")
    rule = FoundMappingRule(id=3, metric_id=2, http_method="GET", pattern="/old", delta=1, position=1)
    there = made().model_copy(update={"metrics": (*(made().metrics or ()), metric), "rules": (rule,)})
    text = "Metric is used by the latest gateway configuration and cannot be deleted"
    counted = {"DELETE backend_apis/7/metrics/2 old": refusal(ErrorType.DENIED, text)}
    remaining = {"DELETE backend_apis/7/mapping_rules/3": refusal(ErrorType.DENIED, "Forbidden")}
    both = decided(backend(), found=there, refusals={**counted, **remaining})
    assert (both.phase, "digests" in both.status) == (Phase.FAILED, False)

    stuck = decided(backend(), found=there.model_copy(update={"rules": ()}), refusals=counted)
    patched = after(backend(), stuck.patch, stuck.status)
    assert gateway_of(patched) != gateway_of(backend())
    assert decided(patched, found=there.model_copy(update={"rules": ()}), refusals=counted).idle, (
        "they are reported once"
    )
    done = decided(patched, found=made())
    assert gateway_of(after(patched, done.patch, done.status)) not in (gateway_of(patched), gateway_of(backend()))


def test_a_backend_in_use_waits_for_its_products_without_a_call() -> None:
    found = decided(going(), products=(product("b", product_id=6, **USES), product("a", product_id=5, **USES)))

    assert (found.phase, found.waits_for) == (Phase.DELETING, ("Product/shop/a", "Product/shop/b"))
    assert (found.reads, found.writes, found.drops_finalizer) == ((), (), False)
    assert message(found.status, "Orphan") == "cannot be deleted: used by Product shop/a, shop/b"
    assert found.deadline is not None


def test_a_backend_goes_when_no_product_in_3scale_uses_it() -> None:
    never_made = after(product("a", **USES), {}, {"providerAccountHost": URL})
    without = product("b", product_id=6)
    found = decided(going(), products=(never_made, without))

    assert [(each.method, each.path) for each in found.writes] == [("DELETE", "backend_apis/7")]
    assert decided(going(), found=FoundBackend(looked=True)).drops_finalizer


def test_a_backend_that_an_unknown_product_uses_is_refused_reported_and_retried() -> None:
    text = "cannot be deleted because it is used by at least one Product"
    found = decided(going(), refusals={"DELETE backend_apis/7 stock": refusal(ErrorType.DENIED, text)})

    assert message(found.status, "Failed") == text
    assert found.deadline == NOW + timedelta(seconds=5)
    assert not found.drops_finalizer


def test_a_backend_whose_id_was_lost_goes_by_its_name_if_it_bears_our_mark() -> None:
    assert [each.path for each in decided(going(synced=False)).reads] == ["backend_apis"]
    assert [each.path for each in decided(going(synced=False), found=made()).writes] == ["backend_apis/7"]
    strange = FoundBackend(looked=True, entry=FoundBackendApi(id=7, system_name="stock"))
    assert decided(going(synced=False), found=strange).drops_finalizer


def test_the_younger_of_two_backends_of_one_name_is_invalid_and_goes_alone() -> None:
    elder = backend("elder").metadata
    younger = backend(meta={"creationTimestamp": NOW.isoformat()}, synced=False)
    assert states(decided(younger, siblings=(elder,)).status) == "Failed Invalid"
    assert decided(going(synced=False), siblings=(elder,)).drops_finalizer


def test_a_corrected_backend_says_so_to_the_products_that_use_it() -> None:
    first = decided(backend(synced=False), found=made())
    settled = after(backend(synced=False), first.patch, first.status)
    assert digests_of(settled).mended is None
    before = gateway_of(settled)
    changed = made()
    other = changed.entry.model_copy(update={"private_endpoint": "https://evil.example.com:443"})  # type: ignore[union-attr]
    mends = decided(settled, found=changed.model_copy(update={"entry": other}), look=True)
    assert [each.method for each in mends.writes] == ["PUT"]

    # After a crash here, the next pass knows that a correction was in progress.
    mending = after(settled, mends.patch, mends.status)
    assert gateway_of(mending) == before
    assert decided(mending).reads
    done = decided(mending, found=made())
    corrected = after(mending, done.patch, done.status)
    assert gateway_of(corrected) != before
    assert decided(corrected).idle
    described = made().entry.model_copy(update={"description": "What we have"})  # type: ignore[union-attr]
    harmless = decided(corrected, found=made().model_copy(update={"entry": described}), look=True)
    assert harmless.writes
    assert (harmless.patch, harmless.status) == ({}, {})


def gateway_of(used: Backend) -> str:
    """What a product that uses it remembers of its gateway's configuration."""
    shop = after(product(**USES, product_id=5), {}, {"conditions": [{"type": "Synced", "status": "True"}]})
    seen = observed(shop, backends=(used,))
    gateway = desired_digests(seen, {"stock": used}).gateway
    assert gateway
    return gateway
