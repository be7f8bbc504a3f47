"""What is done for Products, and which state they show, before and after 3scale is asked."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from threescale_objects import (
    ACCOUNT,
    APICAST,
    HITS,
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
    remembers,
    requested,
    states,
)

from domain.refusal import ErrorType
from domain.threescale import PRODUCT
from domain.threescale.calls import SecretKey
from domain.threescale.issuer_and_policy_secrets import SecretText
from domain.threescale.observed import Phase
from domain.threescale.remote_state import (
    FoundBackend,
    FoundBackendApi,
    FoundMetric,
    FoundProduct,
    FoundService,
    UnexpectedAnswerError,
)
from domain.threescale.resources import Product

USES: dict[str, Any] = {"backendUsages": {"stock": {"path": "/"}}}
HITS_FOUND = FoundMetric(id=1, system_name="hits", friendly_name="Hits", unit="hit", description="Number of API hits")


def made(name: str = "shop", **more: Any) -> FoundProduct:
    service = FoundService(id=5, name=name, system_name=name, annotations={"managed_by": "operator"})
    parts: dict[str, Any] = {"metrics": (HITS_FOUND,), "rules": (), "usages": (), "plans": (), "chain": (APICAST,)}
    return FoundProduct(looked=True, entry=service, **{**parts, **more})


def test_the_first_write_is_finalizer_and_defaults_together() -> None:
    found = decided(Product.model_validate({"metadata": {"name": "x", "uid": "1"}, "spec": {"name": "My API"}}))

    assert found.phase is Phase.NEW
    assert set(found.patch) == {"metadata", "spec"}
    assert not found.writes
    assert not found.status


@pytest.mark.parametrize("owner", [product(), backend()], ids=["product", "backend"])
def test_metrics_without_hits_are_read_again_before_hits_is_created(owner: Any) -> None:
    api = FoundBackend(entry=FoundBackendApi(id=7, system_name="stock"), rules=())
    found = made(metrics=None) if owner.kind_of == PRODUCT else api
    world = observed(owner, found=found, look=True)
    (read,) = requested(world.decide(NOW)).reads
    late = {"metrics": [{"metric": {"id": 3, "system_name": "orders"}}]}
    for attempts in range(4):
        refused = {read.slot: refusal(ErrorType.UNAVAILABLE, "late", attempts)} if attempts else {}
        with pytest.raises(UnexpectedAnswerError):
            world.beside({"refusals": refused}).read(read, late)

    lost = world.beside({"refusals": {read.slot: refusal(ErrorType.UNAVAILABLE, "late", 4)}}).read(read, late)
    assert "POST" in [each.method for each in requested(lost.beside({"refusals": {}}).decide(NOW)).writes]
    there = {"metrics": [{"metric": {"id": 1, "system_name": "hits" if owner.kind_of == PRODUCT else "hits.7"}}]}
    assert world.read(read, there).found.metrics
    assert observed(remembers(owner, synced="x"), found=found).read(read, late).found.metrics, "hits was deleted later"


def test_a_product_without_an_account_is_an_orphan_that_names_the_secret() -> None:
    found = decided(product(), provider=NO_ACCOUNT)

    assert states(found.status) == "Failed Orphan"
    assert found.waits_for == ("Secret/shop/threescale-provider-account",)
    assert not found.reads


@pytest.mark.parametrize(
    ("backends", "shown"),
    [
        ([], "Failed Orphan"),
        ([backend(synced=False)], "Failed Orphan"),
        ([backend(meta={"deletionTimestamp": NOW.isoformat()})], "Failed Orphan"),
        ([after(backend(), {}, {"providerAccountHost": "https://other.example.com"})], "Failed Orphan"),
        ([after(backend(), {}, {"conditions": [{"type": "Invalid", "status": "True"}]})], "Failed Invalid"),
    ],
    ids=["missing", "not synced", "going", "another tenant's", "invalid"],
)
def test_a_backend_that_cannot_be_used_blocks_without_a_call(backends: list[Any], shown: str) -> None:
    found = decided(product(**USES), backends=tuple(backends))

    assert states(found.status) == shown
    assert found.waits_for == ("Backend/shop/stock",)
    assert (found.reads, found.writes) == ((), ())


def test_a_backend_that_only_cannot_delete_a_metric_can_be_used() -> None:
    text = "Method is used by the latest gateway configuration and cannot be deleted"
    failed = after(backend(), {}, {"conditions": [{"type": "Failed", "status": "True", "message": text}]})

    assert decided(product(**USES), backends=(failed,)).reads


def test_missing_backends_are_reported_in_the_order_of_their_names() -> None:
    """3scale weakness 1: messages in random order, and so a loop of status writes."""
    names = ["d", "a", "c", "b"]
    found = decided(product(backendUsages={name: {"path": f"/{name}"} for name in names}))

    assert [name for name in "abcd" if f"backendUsages[{name}]" in message(found.status, "Orphan")] == list("abcd")
    assert found.waits_for == tuple(f"Backend/shop/{name}" for name in "abcd")


def test_an_orphan_looks_again_later_and_later_and_its_status_stays() -> None:
    first = decided(product(**USES))
    orphan = after(product(**USES), {}, first.status)
    again = decided(orphan, now=NOW + timedelta(hours=1))

    assert not again.status
    assert first.deadline is not None
    assert timedelta(seconds=4) < first.deadline - NOW < timedelta(seconds=6)
    assert again.deadline is not None
    assert timedelta(0) < again.deadline - (NOW + timedelta(hours=1)) <= timedelta(minutes=12)


@pytest.mark.parametrize(
    "spec",
    [
        {"mappingRules": [{"httpMethod": "GET", "pattern": "/", "metricMethodRef": "none", "increment": 1}]},
        {"backendUsages": {"a": {"path": "v1"}, "b": {"path": "/V1/"}}},
        {"deployment": {"apicastHosted": {"authentication": {"oidc": {"issuerType": "keycloak"}}}}},
    ],
    ids=["rule", "paths", "issuer"],
)
def test_a_spec_at_fault_is_invalid_without_a_call(spec: dict[str, Any]) -> None:
    """3scale weakness 16: an issuer that is missing is reported as Failed, and retried for ever."""
    found = decided(product(**spec))

    assert states(found.status) == "Failed Invalid"
    assert (found.reads, found.writes, found.deadline) == ((), (), None)


IN_A_SECRET = {"name": "x", "version": "1", "enabled": True, "configuration": {}, "configurationRef": {"name": "lost"}}
ISSUER = {"issuerType": "keycloak", "issuerEndpointRef": {"name": "lost"}}


@pytest.mark.parametrize(
    "spec",
    [
        {"policies": [IN_A_SECRET, APICAST]},
        {"deployment": {"apicastHosted": {"authentication": {"oidc": ISSUER}}}},
    ],
    ids=["policy's configuration", "issuer"],
)
def test_a_secret_that_is_not_there_is_waited_for_and_looked_for_again(spec: dict[str, Any]) -> None:
    found = decided(product(**spec))

    assert states(found.status) == "Failed Orphan"
    assert found.waits_for == ("Secret/shop/lost",)
    assert (found.reads, found.writes) == ((), ())
    assert found.deadline is not None


def test_a_secrets_content_may_be_at_fault() -> None:
    key = SecretKey(namespace="shop", name="lost", key="configuration")
    found = decided(product(policies=[IN_A_SECRET, APICAST]), secrets=(SecretText(key=key, text="[1]"),))

    assert states(found.status) == "Failed Invalid"
    assert found.waits_for == ("Secret/shop/lost",)


def test_of_two_products_with_one_system_name_the_younger_is_invalid() -> None:
    elder = product("elder").metadata
    younger = product("shop", meta={"creationTimestamp": NOW.isoformat()})

    assert states(decided(younger, siblings=(elder,)).status) == "Failed Invalid"
    assert decided(product("elder"), siblings=(younger.metadata,)).reads


def test_a_product_is_looked_for_made_and_read() -> None:
    assert [each.path for each in decided(product()).reads] == ["services"]
    assert [each.path for each in decided(product(product_id=5)).reads] == ["services/5"]
    (creation,) = decided(product(), found=FoundProduct(looked=True)).writes
    assert (creation.method, creation.path) == ("POST", "services")
    assert creation.fields["annotations"] == {"managed_by": "operator"}


def test_a_product_as_it_shall_be_is_remembered_and_asks_for_nothing_more() -> None:
    found = decided(product(), found=made())
    assert found.phase is Phase.SYNCED
    assert states(found.status) == "Synced"
    assert found.status["productId"] == 5
    settled = after(product(), found.patch, found.status)
    again = decided(settled, now=NOW + timedelta(days=30))

    assert again.idle
    assert again.deadline is None


def settled() -> Product:
    found = decided(
        product(**USES), backends=(backend(),), found=made(usages=({"id": 9, "path": "/", "backend_id": 7},))
    )
    (deploy,) = found.writes
    deployed = made(usages=({"id": 9, "path": "/", "backend_id": 7},), deployed=deploy.deploys)
    done = decided(product(**USES), backends=(backend(),), found=deployed)
    result = after(product(**USES), done.patch, done.status)
    assert decided(result, backends=(backend(),)).idle
    assert isinstance(result, Product)
    return result


@pytest.mark.parametrize(
    ("change", "reads"),
    [
        ({}, False),
        ({"metadata": {"annotations": {"someone/else": "x"}}}, False),
        ({"spec": {"description": "new"}}, True),
        ({"spec": {"backendUsages": {"stock": {"path": "/v2"}}}}, True),
        ({"status": {"digests": {"synced": None}}}, True),
    ],
)
def test_only_a_changed_spec_has_3scale_observed(change: dict[str, Any], reads: bool) -> None:
    assert bool(decided(after(settled(), change), backends=(backend(),)).reads) is reads


def test_a_backend_with_another_gateway_part_has_its_products_deploy() -> None:
    other = remembers(backend(), gateway="other")
    found = decided(settled(), backends=(other,), found=made(usages=({"id": 9, "path": "/", "backend_id": 7},)))

    (deploy,) = found.writes
    assert deploy.path == "services/5/proxy/deploy"
    assert (found.patch, found.status) == ({}, {})


def test_a_backend_with_other_metrics_has_products_that_name_them_observed() -> None:
    other = remembers(backend(), synced="other")
    limit = {"period": "day", "value": 1, "metricMethodRef": {"systemName": "hits", "backend": "stock"}}
    plans = {"basic": {"limits": [limit]}}
    there = {
        "usages": ({"id": 9, "path": "/", "backend_id": 7},),
        "plans": (
            {
                "id": 3,
                "system_name": "basic",
                "limits": ({"id": 4, "period": "day", "value": 1, "metric_id": 8},),
                "pricing_rules": (),
            },
        ),
        "used": {7: ({"id": 8, "system_name": "hits.7"},)},
    }
    desired = product(**USES, applicationPlans=plans)
    (deploy,) = decided(desired, backends=(backend(),), found=made(**there)).writes
    done = decided(desired, backends=(backend(),), found=made(**there, deployed=deploy.deploys))
    naming = after(desired, done.patch, done.status)

    assert decided(naming, backends=(backend(),)).idle
    assert decided(naming, backends=(other,)).reads
    assert decided(settled(), backends=(other,)).idle


def test_drift_found_by_the_sweep_is_corrected_and_the_deployment_forgotten_first() -> None:
    found = decided(settled(), backends=(backend(),), found=made(), look=True)

    assert (found.patch, found.status) == ({}, {"digests": {"synced": None, "gateway": None}})
    assert [each.path for each in found.writes] == ["services/5/backend_usages", "services/5/proxy/deploy"]


def test_a_refusal_is_reported_and_retried_while_the_rest_goes_on() -> None:
    plan = {"id": 3, "system_name": "old", "name": "old", "state": "hidden"}
    spec: dict[str, Any] = {"description": "new"}
    first = decided(product(**spec), found=made(plans=(plan,)))
    slot = "DELETE services/5/application_plans/3 old"
    assert [each.slot for each in first.writes] == ["PUT services/5 shop", slot]
    refusals = {slot: refusal(ErrorType.DENIED, "This application plan cannot be deleted!")}
    rest = decided(product(**spec), found=made(plans=(plan,)), refusals=refusals)
    assert [each.slot for each in rest.writes] == ["PUT services/5 shop"]
    described = made(plans=(plan,)).model_copy(
        update={"entry": FoundService(**{**made().entry.model_dump(), "description": "new"})}  # type: ignore[union-attr]
    )
    stuck = decided(product(**spec), found=described, refusals=refusals)
    assert states(stuck.status) == "Failed"
    assert message(stuck.status, "Failed") == "This application plan cannot be deleted!"
    assert stuck.deadline == NOW + timedelta(seconds=5)
    assert not stuck.patch
    later = decided(product(**spec), found=described, refusals=refusals, now=NOW + timedelta(seconds=5))
    assert [each.slot for each in later.writes] == [slot]


def test_a_refusal_of_3scale_as_invalid_makes_the_object_invalid() -> None:
    slot = "POST services shop"
    refusals = {slot: refusal(ErrorType.INVALID, "system_name: is invalid")}
    found = decided(product(), found=FoundProduct(looked=True), refusals=refusals)

    assert states(found.status) == "Failed Invalid"


def going(**more: Any) -> Product:
    return product(meta={"deletionTimestamp": NOW.isoformat(), **more.pop("meta", {})}, **more)


def test_a_product_goes_by_its_id_with_one_call() -> None:
    found = decided(going(product_id=5))
    assert [(each.method, each.path) for each in found.writes] == [("DELETE", "services/5")]
    assert decided(going(product_id=5), found=FoundProduct(looked=True)).drops_finalizer


def test_a_product_whose_id_was_lost_goes_by_its_name_if_it_bears_our_mark() -> None:
    assert [each.path for each in decided(going()).reads] == ["services"]
    assert [each.path for each in decided(going(), found=made()).writes] == ["services/5"]
    strange = made().model_copy(update={"entry": FoundService(id=5, name="shop", system_name="shop")})
    assert decided(going(), found=strange).drops_finalizer


def test_the_younger_namesake_goes_without_taking_the_elders_product() -> None:
    found = decided(going(), siblings=(product("elder").metadata,))

    assert found.drops_finalizer
    assert not found.reads


@pytest.mark.parametrize(
    ("object_", "account"),
    [
        (going(product_id=5, meta={"annotations": {"perdure.dev/retain": "true"}}), ACCOUNT),
        (going(product_id=5), NO_ACCOUNT),
    ],
    ids=["retained", "disconnected"],
)
def test_a_product_that_stays_in_3scale_is_released_without_a_call(object_: Product, account: Any) -> None:
    found = decided(object_, provider=account)

    assert found.drops_finalizer
    assert found.left == ("3scale product 5",)
    assert (found.reads, found.writes) == ((), ())


def test_a_product_with_an_incomplete_secret_delays_its_deletion_if_it_is_in_3scale() -> None:
    incomplete = NO_ACCOUNT.model_copy(update={"why": "it has no token", "incomplete": True})
    found = decided(going(product_id=5), provider=incomplete)

    assert (found.phase, found.drops_finalizer) == (Phase.DELETING, False)
    assert (message(found.status, "Orphan"), found.waits_for) == ("it has no token", (NO_ACCOUNT.waits_for,))
    assert found.deadline is not None
    assert decided(going(), provider=incomplete).drops_finalizer


def test_the_last_product_that_3scale_refuses_to_delete_is_reported_and_retried() -> None:
    refusals = {"DELETE services/5 shop": refusal(ErrorType.INVALID, "the last product", attempts=3)}
    found = decided(going(product_id=5), refusals=refusals)

    assert (found.phase, found.deadline) == (Phase.DELETING, NOW + timedelta(seconds=20))
    assert message(found.status, "Failed") == "the last product"
    assert not found.drops_finalizer
    later = decided(going(product_id=5), refusals=refusals, now=NOW + timedelta(seconds=20))
    assert [each.method for each in later.writes] == ["DELETE"]


def test_a_secrets_new_version_is_a_new_wish_and_its_text_is_not_remembered() -> None:
    reference = {
        "name": "cors",
        "version": "1",
        "enabled": True,
        "configuration": {},
        "configurationRef": {"name": "s"},
    }
    key = SecretKey(namespace="shop", name="s", key="configuration")
    old, new = (SecretText(key=key, text='{"secret": 1}', version=version) for version in ("1", "2"))
    chain = ({**reference, "configuration": {"secret": 1}}, APICAST)
    desired = product(policies=[reference, APICAST])
    found = decided(desired, secrets=(old,), found=made(chain=chain))
    remembered = after(desired, found.patch, found.status)

    assert decided(remembered, secrets=(old,)).idle
    assert decided(remembered, secrets=(new,)).reads
    assert "secret" not in str(found.patch)


def test_the_tenants_address_may_be_written_in_other_ways() -> None:
    other = after(backend(), {}, {"providerAccountHost": f"{URL.upper().replace('HTTPS', 'https')}:443/"})

    assert decided(product(**USES, metrics={"hits": HITS}), backends=(other,)).reads


def test_a_backend_without_a_tenant_does_not_hide_the_products_own() -> None:
    older = {"creationTimestamp": (NOW - timedelta(days=9)).isoformat()}
    lost = backend("lost", meta=older, synced=False, systemName="stock")
    other = after(
        backend("other", meta=older, systemName="stock"), {}, {"providerAccountHost": "https://o.example.com"}
    )

    assert decided(product(**USES), backends=(lost, other, backend())).reads
    assert not decided(product(**USES), backends=(lost, other)).reads
