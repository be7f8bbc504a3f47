"""A release whose clean-up keeps failing: the Account is as the replaced operator's tools look for it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast
from unittest.mock import AsyncMock

import pytest
from account_objects import (
    ANSWERS,
    AWS_ID,
    CONFIG,
    NAME,
    NOW,
    ago,
    claim,
    claim_world,
    present,
    ready_account,
    settle,
    world,
)
from memory_kube import MemoryKube
from temporalio.client import Client

from activities.accounts import handover
from activities.accounts.cache import Reader
from activities.accounts.handover import HandOver
from activities.accounts.observation import ObserveActivities
from activities.aws.session import Sessions
from domain.accounts import ACCOUNT, ACCOUNT_CLAIM
from domain.accounts.account_lifecycle import decide as decide_account
from domain.accounts.actions.handover import Release, ReleaseAccount
from domain.accounts.claim_holder import holds
from domain.accounts.claim_lifecycle import decide
from domain.accounts.constants import CLAIM_UID_ANNOTATION, FINALIZER, OPERATOR_NAMESPACE, UNCLEANED
from domain.accounts.force_release import FORCE_RELEASE
from domain.accounts.free_account_choice import is_free
from domain.accounts.passes import ObserveAccount, ObserveClaim
from domain.accounts.resources import Account, AccountClaim, LegalEntity
from domain.control_annotations import RETRY
from domain.decision import Outcome
from domain.identity import Kind
from engine.errors import Unavailable
from engine.settings import Settings

ENTITY = {"id": "entity-1", "name": "Entity One"}
GOING = {"deletionTimestamp": ago(minutes=1), "finalizers": [FINALIZER]}
FAILED = {"state": "Failed", "reused": True, "conditions": [{"type": "Failed", "status": "True"}]}


def unclean(uid: str = "", **fields: Any) -> Account:
    """As a release leaves it that could not clean; without a uid, the replaced operator's."""
    noted = {"annotations": {CLAIM_UID_ANNOTATION: uid, **fields.pop("annotations", {})}} if uid else {}
    meta = {**noted, **fields.pop("meta", {})}
    return ready_account(meta=meta, spec={"legalEntity": ENTITY, **fields.pop("spec", {})}, status={**FAILED, **fields})


def deleted(**spec: Any) -> AccountClaim:
    return claim(meta=GOING, spec={"accountLink": NAME, "legalEntity": ENTITY, **spec}, status={"state": "Ready"})


async def stored(kube: MemoryKube, *resources: Account | AccountClaim) -> None:
    for each in resources:
        kind, namespace = each.kind_of, each.metadata.namespace
        await kube.create(kind, each.model_dump(mode="json", exclude_none=True), namespace)


async def test_an_account_that_cannot_be_cleaned_is_failed_and_without_a_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the shredder finds it: Failed, no claimLink, not a customer's."""
    monkeypatch.setattr(handover, "now", lambda: NOW)
    kube = MemoryKube()
    held = ready_account(
        spec={"claimLink": "claim", "claimLinkNamespace": "tenant", "legalEntity": ENTITY},
        status={"claimed": True, "supportCaseID": "case-1"},
    )
    await stored(kube, held, deleted())
    reader = Reader(kube, Settings())  # type: ignore[arg-type]
    by = deleted().key
    action = ReleaseAccount(claim=by, account=NAME, legal_entity=LegalEntity(**ENTITY), how=Release.FAILED)
    await HandOver(reader, cast("Sessions", None), cast("Client", None)).release(action)
    left = await reader.account(NAME)
    assert left is not None
    assert (left.spec.claim_link, left.spec.claim_link_namespace, left.spec.legal_entity.id) == ("", "", "entity-1")
    status = left.status
    assert (status.state, status.claimed, status.reused, status.support_case_id) == ("Failed", False, True, "")
    mark = present(status.conditions, "Failed")
    assert (mark.status, mark.reason, mark.message) == ("True", "Failed", "Account Reuse - Failed")
    assert holds(deleted(), left), "its release is repeated"


class Dying(MemoryKube):
    """An API server whose client dies before one of its writes of the Account."""

    def __init__(self, writes: int) -> None:
        super().__init__()
        self.left = writes

    async def patch(self, kind: Kind, *where: Any, **how: Any) -> Any:
        if kind == ACCOUNT:
            self.left -= 1
            if self.left == -1:
                raise Unavailable("killed")
        return await super().patch(kind, *where, **how)


async def _released_at_last(kube: MemoryKube, how: Release, monkeypatch: pytest.MonkeyPatch) -> Account:
    monkeypatch.setattr(handover, "now", lambda: NOW)
    monkeypatch.setattr(handover, "wake", AsyncMock())
    reader = Reader(kube, Settings())  # type: ignore[arg-type]
    action = ReleaseAccount(claim=deleted().key, account=NAME, legal_entity=LegalEntity(**ENTITY), how=how)
    hand_over = HandOver(reader, cast("Sessions", None), cast("Client", None))
    with suppress(Unavailable):
        await hand_over.release(action)
    await hand_over.release(action)
    left = await reader.account(NAME)
    assert left is not None
    return left


@pytest.mark.parametrize("writes", range(3))
async def test_an_unclean_account_is_freed_although_its_release_is_killed(
    writes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kube = Dying(writes)
    await stored(kube, unclean(uid=deleted().metadata.uid), deleted())
    assert is_free(await _released_at_last(kube, Release.FREE, monkeypatch))


@pytest.mark.parametrize("writes", range(4))
@pytest.mark.parametrize("held", [True, False])
async def test_a_forced_release_that_is_killed_leaves_no_order_to_release_again(
    writes: int, held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = {CLAIM_UID_ANNOTATION: deleted().metadata.uid, FORCE_RELEASE: "closed"}
    link = {"claimLink": "claim", "claimLinkNamespace": "tenant", "legalEntity": ENTITY}
    linked = ready_account(meta={"annotations": noted}, spec=link, status={"claimed": True})
    kube = Dying(writes)
    await stored(kube, linked if held else unclean(meta={"annotations": noted}), deleted())
    left = await _released_at_last(kube, Release.UNCLEANED, monkeypatch)
    assert left.metadata.annotations == {UNCLEANED: "closed"}
    assert (left.status.state, left.spec.claim_link) == ("Failed", "")


@pytest.mark.parametrize("uid", ["uid-claim", ""])
def test_the_release_goes_on_until_the_account_is_clean(uid: str) -> None:
    """Also one that the replaced operator has begun: its Account has neither link nor uid."""
    requests: list[str] = []

    def answer(name: str) -> Any:
        def note(action: Any) -> Any:
            requests.append(getattr(action, "how", name))
            return ANSWERS[name](action)

        return note

    of = deleted()
    own = unclean(uid=of.metadata.uid if uid else "")
    names = ("aws.rotate_keys", "aws.clean_region", "aws.clean_global", "accounts.release")
    end = settle(claim_world(of, account=own), answers={name: answer(name) for name in names})
    assert requests == ["aws.rotate_keys", "aws.clean_region", "aws.clean_global", Release.FREE]
    assert not end.exists


@pytest.mark.parametrize(
    "other",
    [
        unclean(uid="another claim's"),
        unclean(meta={"annotations": {UNCLEANED: "closed"}}),
        unclean(spec={"legalEntity": {"id": "entity-2", "name": ""}}),
        unclean(spec={"legalEntity": {"id": "", "name": ""}}),
        unclean(reused=False),
        unclean(spec={"claimLink": "another", "claimLinkNamespace": "tenant"}),
        ready_account(spec={"legalEntity": ENTITY}, status={"state": "", "conditions": []}),
    ],
)
def test_a_deleted_claim_cleans_no_account_that_it_does_not_release(other: Account) -> None:
    """The last one was cleaned by the shredder, which replaces the status: the release has nothing left to do."""
    decision = decide(claim_world(deleted(), account=other), NOW)
    assert decision.why == "it holds no Account any more"


def test_a_living_claim_gets_no_account_that_could_not_be_cleaned() -> None:
    living = claim(spec={"accountLink": NAME, "legalEntity": ENTITY}, status={"state": "Pending"})
    assert not holds(living, unclean())
    assert not holds(living, unclean(uid="another claim's"))


@pytest.mark.parametrize("link", ["", "nonsense", NAME])
async def test_its_claim_finds_it_whatever_its_link_says(link: str) -> None:
    kube = MemoryKube()
    made = await kube.create(
        ACCOUNT_CLAIM, deleted(accountLink=link).model_dump(mode="json", exclude_none=True), "tenant"
    )
    of = AccountClaim.model_validate(made)
    await stored(kube, unclean(uid=of.metadata.uid))
    seen = await ObserveActivities(Reader(kube, Settings())).observe_claim(ObserveClaim(key=of.key))  # type: ignore[arg-type]
    assert seen.held is not None


async def test_its_deletion_waits_for_the_release() -> None:
    kube = MemoryKube()
    made = await kube.create(ACCOUNT_CLAIM, deleted().model_dump(mode="json", exclude_none=True), "tenant")
    own = unclean(uid=made["metadata"]["uid"], meta={**GOING})
    made = await kube.create(ACCOUNT, own.model_dump(mode="json", exclude_none=True), OPERATOR_NAMESPACE)
    look = ObserveAccount(key=own.key.model_copy(update={"uid": made["metadata"]["uid"]}))
    seen = await ObserveActivities(Reader(kube, Settings())).observe_account(look)  # type: ignore[arg-type]
    assert decide_account(seen, NOW).why == "Deletion waits until claim claim (Namespace: tenant) is released"


@pytest.mark.parametrize("retried", [False, True])
async def test_a_retry_of_an_unclean_account_does_not_end_its_clean_up(retried: bool) -> None:
    kube = MemoryKube()
    made = await kube.create(ACCOUNT_CLAIM, deleted().model_dump(mode="json", exclude_none=True), "tenant")
    noted = {RETRY: "all that failed"} if retried else {}
    own = unclean(uid=made["metadata"]["uid"], annotations=noted)
    made = await kube.create(ACCOUNT, own.model_dump(mode="json", exclude_none=True), OPERATOR_NAMESPACE)
    look = ObserveAccount(key=own.key.model_copy(update={"uid": made["metadata"]["uid"]}))
    seen = await ObserveActivities(Reader(kube, Settings())).observe_account(look)  # type: ignore[arg-type]
    end = settle(seen.model_copy(update={"config": CONFIG}))
    assert end.account.failed
    decision = decide_account(end, NOW)
    assert (decision.outcome, decision.phase) == (Outcome.WAITING, "Failed"), "so `perdure retry` is refused"
    assert decision.waits_for == ("AccountClaim/tenant/claim",)


def test_a_retry_starts_a_reused_account_again_that_no_release_cleans() -> None:
    failed = unclean(meta={"annotations": {RETRY: "all that failed"}})
    assert settle(world(failed)).account.status.state == "PendingVerification"


def test_a_shredded_account_starts_again_and_stays_its_entitys() -> None:
    blank = ready_account(spec={"legalEntity": ENTITY}, status={"state": "", "conditions": [], "claimed": False})
    end = settle(world(blank, known={"resolved_case": "case-1"}))
    assert (end.account.status.state, end.account.spec.aws_account_id) == ("Ready", AWS_ID)
    assert end.account.spec.legal_entity.id == "entity-1"
