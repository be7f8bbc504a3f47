"""What a claim that is deleted gives back: the Account that names it, whatever its own link says by then."""

from __future__ import annotations

from typing import Any

import pytest
from account_objects import AWS_ID, NAME, NOW, account, ago, claim, claim_world, ready_account, settle
from memory_kube import MemoryKube

from activities.accounts import cache
from activities.accounts.cache import Reader
from activities.accounts.observation import ObserveActivities
from domain.accounts import ACCOUNT, ACCOUNT_CLAIM
from domain.accounts.claim_lifecycle import decide
from domain.accounts.constants import FINALIZER
from domain.accounts.passes import ObserveAccount, ObserveClaim
from domain.accounts.resources import Account
from domain.decision import Outcome
from engine.settings import Settings

OTHER = "osd-creds-mgmt-zzz999"
GOING = {"deletionTimestamp": ago(minutes=1), "finalizers": [FINALIZER]}


def held(name: str, by: str, **spec: Any) -> dict[str, Any]:
    link = {"awsAccountID": AWS_ID, "claimLink": by, "claimLinkNamespace": "tenant" if by else ""}
    return account(name, spec={**link, **spec}).model_dump(mode="json", exclude_none=True)


async def seen(link: str, *accounts: dict[str, Any], state: str = "", **meta: Any) -> str:
    """The name of the Account that the claim's look finds."""
    kube = MemoryKube()
    for each in accounts:
        await kube.create(ACCOUNT, each, "aws-account-operator")
    of = claim(spec={"accountLink": link}, meta=meta, status={"state": state})
    made = await kube.create(ACCOUNT_CLAIM, of.model_dump(mode="json", exclude_none=True), "tenant")
    look = ObserveClaim(key=of.key.model_copy(update={"uid": made["metadata"]["uid"]}))
    world = await ObserveActivities(Reader(kube, Settings())).observe_claim(look)  # type: ignore[arg-type]
    return world.account.metadata.name if world.account else ""


@pytest.mark.parametrize("byoc", [False, True])
@pytest.mark.parametrize("link", ["", "nonsense", OTHER, NAME])
async def test_a_deleted_claim_gives_back_the_account_that_names_it(link: str, byoc: bool) -> None:
    assert await seen(link, held(NAME, "claim", byoc=byoc), held(OTHER, "another"), **GOING) == NAME


@pytest.mark.parametrize(("link", "found"), [("nonsense", ""), (OTHER, OTHER), (NAME, NAME)])
async def test_a_living_claim_sees_what_it_names(link: str, found: str) -> None:
    assert await seen(link, held(NAME, "claim"), held(OTHER, "another")) == found


@pytest.mark.parametrize(("claimed", "link", "found"), [(True, NAME, True), (True, OTHER, False), (False, NAME, False)])
async def test_a_claimed_account_without_a_link_sees_the_claim_that_names_it(
    claimed: bool, link: str, found: bool
) -> None:
    kube = MemoryKube()
    of = ready_account(status={"claimed": claimed})
    made = await kube.create(ACCOUNT, of.model_dump(mode="json", exclude_none=True), "aws-account-operator")
    fulfilled = claim(spec={"accountLink": link}, status={"state": "Ready"})
    await kube.create(ACCOUNT_CLAIM, fulfilled.model_dump(mode="json", exclude_none=True), "tenant")
    look = ObserveAccount(key=of.key.model_copy(update={"uid": made["metadata"]["uid"]}))
    world = await ObserveActivities(Reader(kube, Settings())).observe_account(look)  # type: ignore[arg-type]
    assert (world.claim is not None) is found


@pytest.mark.parametrize(("state", "found"), [("Ready", NAME), ("Error", ""), ("", "")])
async def test_a_ready_claim_without_its_link_finds_the_account_that_names_it(state: str, found: str) -> None:
    assert await seen("", held(OTHER, "another"), held(NAME, "claim"), state=state) == found


@pytest.mark.parametrize("unserved", ["", "3 held by other claims"])
def test_a_ready_claim_without_its_link_gets_it_back_without_its_pool(unserved: str) -> None:
    linked = {"claimLink": "claim", "claimLinkNamespace": "tenant"}
    served = claim(spec={"accountOU": "ou-1"}, status={"state": "Ready"})
    start = claim_world(served, account=ready_account(spec=linked, status={"claimed": True}), unserved=unserved)
    end = settle(start)
    assert end.claim.spec.account_link == NAME
    assert decide(end, NOW).outcome is Outcome.SETTLED
    foreign = ready_account(spec={**linked, "claimLink": "another"}, status={"claimed": True})
    assert decide(start.model_copy(update={"account": foreign}), NOW).outcome is Outcome.WAITING


async def test_of_many_accounts_only_the_one_naming_the_claim_is_parsed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[str] = []

    class Noted(Account):
        """Notes which Account it is made of."""

        @classmethod
        def model_validate(cls, obj: Any, **_: Any) -> Account:  # type: ignore[override]
            made.append(obj["metadata"]["name"])
            return Account.model_validate(obj)

    monkeypatch.setattr(cache, "Account", Noted)
    elsewhere = held("osd-creds-mgmt-eeeeee", "claim", claimLinkNamespace="elsewhere")
    others = [held(f"osd-creds-mgmt-{number:06}", f"claim-{number}") for number in range(9)]
    assert await seen("", elsewhere, *others, held(NAME, "claim"), **GOING) == NAME
    assert made == [NAME]


async def test_an_account_that_cannot_be_read_stops_no_claim_from_finding_its_own() -> None:
    garbled = {**held("osd-creds-mgmt-aaaaaa", "claim"), "status": {"claimed": "perhaps"}}
    assert await seen("", garbled, held(NAME, "claim"), **GOING) == NAME
