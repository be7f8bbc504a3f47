"""The release of a claim whose Account has lost its link: a tool blanked it before the claim was deleted."""

from __future__ import annotations

from typing import Any, cast

import pytest
from account_objects import AWS_ID, NAME, NOW, activities, ago, claim, claim_world, ready_account, settle
from memory_kube import MemoryKube
from temporalio.client import Client

from activities.accounts import handover
from activities.accounts.cache import Reader
from activities.accounts.claim_objects import DeliveryActivities
from activities.accounts.handover import HandOver
from activities.accounts.observation import ObserveActivities
from activities.aws.session import Sessions
from domain.accounts import ACCOUNT, ACCOUNT_CLAIM
from domain.accounts.actions.claim_secrets import DeliverCredentials, DeliverRole
from domain.accounts.actions.handover import Fulfil, MakeCustomerAccount, ReleaseAccount
from domain.accounts.claim_holder import holds, links_back
from domain.accounts.claim_lifecycle import decide
from domain.accounts.constants import CLAIM_UID_ANNOTATION, FINALIZER, OPERATOR_NAMESPACE
from domain.accounts.passes import ObserveAccount, ObserveClaim
from domain.accounts.resources import Account, AccountClaim, LegalEntity
from domain.identity import Key
from engine.errors import Denied
from engine.settings import Settings

ENTITY = {"id": "entity-1", "name": "Entity One"}
GOING = {"deletionTimestamp": ago(minutes=1), "finalizers": [FINALIZER]}


def cleared(uid: str = "uid-claim", **fields: Any) -> Account:
    meta = {"annotations": {CLAIM_UID_ANNOTATION: uid} if uid else {}, **fields.pop("meta", {})}
    return ready_account(meta=meta, spec={"legalEntity": ENTITY, **fields}, status={"claimed": True})


def deleted(**spec: Any) -> AccountClaim:
    return claim(meta=GOING, spec={"accountLink": NAME, **spec}, status={"state": "Ready"})


async def stored(*resources: Account | AccountClaim) -> tuple[MemoryKube, Key]:
    """A cluster with these objects, and the last one's key."""
    kube, made = MemoryKube(), {}
    for each in resources:
        body = each.model_dump(mode="json", exclude_none=True)
        made = await kube.create(each.kind_of, body, each.metadata.namespace)
    return kube, resources[-1].key.model_copy(update={"uid": made["metadata"]["uid"]})


def observing(kube: MemoryKube) -> ObserveActivities:
    return ObserveActivities(Reader(kube, Settings()))  # type: ignore[arg-type]


def test_a_deleted_claim_cleans_and_frees_the_account_that_records_its_uid() -> None:
    start = claim_world(deleted(), account=cleared())
    assert activities(decide(start, NOW)) == ["aws.rotate_keys"]
    assert not settle(start).exists


def test_a_deleted_customers_claim_deletes_the_account_that_records_its_uid() -> None:
    start = claim_world(deleted(byoc=True, manualSTSMode=True), account=cleared(byoc=True, manualSTSMode=True))
    assert activities(decide(start, NOW)) == ["kube.delete"]


@pytest.mark.parametrize("uid", ["", "uid-of-another"])
def test_a_deleted_claim_leaves_an_unlinked_account_that_does_not_record_it(uid: str) -> None:
    assert decide(claim_world(deleted(), account=cleared(uid)), NOW).why == "it holds no Account any more"


def test_a_living_claim_gets_nothing_from_an_account_without_its_link() -> None:
    living = claim(spec={"accountLink": NAME})
    assert not holds(living, cleared())
    assert not links_back(cleared(), living.key)


async def test_a_link_blanked_after_the_decision_is_denied_at_the_effect() -> None:
    own = cleared(byoc=True)
    kube, _ = await stored(own)
    reader = Reader(kube, Settings())  # type: ignore[arg-type]
    delivery, of = DeliveryActivities(reader), claim().key
    to: dict[str, Any] = {"claim": of, "account": NAME, "secret": "aws"}
    key: dict[str, Any] = {"source_secret": f"{NAME}-secret", "support_role_arn": "role"}
    where: dict[str, Any] = {
        "root": "r-1",
        "base": "ou-base",
        "legal_entity": LegalEntity(**ENTITY),
        "account_id": AWS_ID,
    }
    fulfil = Fulfil(claim=of, account=NAME, secret_name="aws", **where, **key)
    effects = (
        HandOver(reader, cast("Sessions", None), cast("Client", None)).hand_over(fulfil),
        delivery.deliver_credentials(DeliverCredentials(input_secret="keys", **to, **key)),
        delivery.deliver_role(DeliverRole(role_arn="role", **to)),
    )
    for effect in effects:
        with pytest.raises(Denied) as refused:
            await effect
        assert refused.value.code == "NotTheHolder"
    make = MakeCustomerAccount(claim=of, account_id=AWS_ID, legal_entity=LegalEntity(**ENTITY), manual_sts_mode=False)
    made = await delivery.make_account(make)
    assert made.made != NAME


async def test_an_account_without_its_link_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handover, "now", lambda: NOW)
    woken: list[Key] = []

    async def wake(_: Client, key: Key) -> None:
        woken.append(key)

    monkeypatch.setattr(handover, "wake", wake)
    kube, _ = await stored(cleared())
    reader = Reader(kube, Settings())  # type: ignore[arg-type]
    action = ReleaseAccount(claim=deleted().key, account=NAME, legal_entity=LegalEntity(**ENTITY))
    await HandOver(reader, cast("Sessions", None), cast("Client", None)).release(action)
    left = await reader.account(NAME)
    assert left is not None
    assert (left.status.claimed, left.status.reused) == (False, True)
    assert CLAIM_UID_ANNOTATION not in left.metadata.annotations
    assert [key.name for key in woken] == [NAME]


@pytest.mark.parametrize("link", ["", "nonsense", NAME])
async def test_a_deleted_claim_finds_its_account_by_the_uid(link: str) -> None:
    kube, key = await stored(deleted(accountLink=link))
    await kube.create(ACCOUNT, cleared(key.uid).model_dump(mode="json", exclude_none=True), OPERATOR_NAMESPACE)
    assert (await observing(kube).observe_claim(ObserveClaim(key=key))).held is not None


@pytest.mark.parametrize("byoc", [False, True])
async def test_an_account_being_deleted_finds_its_claim_by_the_uid(byoc: bool) -> None:
    kube, key = await stored(deleted())
    own = cleared(key.uid, byoc=byoc, meta=GOING | {"annotations": {CLAIM_UID_ANNOTATION: key.uid}})
    made = await kube.create(ACCOUNT, own.model_dump(mode="json", exclude_none=True), OPERATOR_NAMESPACE)
    look = ObserveAccount(key=own.key.model_copy(update={"uid": made["metadata"]["uid"]}))
    found = (await observing(kube).observe_account(look)).claim
    assert found is not None
    assert found.kind_of is ACCOUNT_CLAIM
