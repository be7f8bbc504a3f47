"""Many claims meet many accounts: each gets the result of a plain search, at the cost of one search."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from account_objects import AWS_ID, CONFIG, POOL, account, ago, claim, config, pool, ready_account
from hypothesis import given
from hypothesis import strategies as st

from domain.accounts import free_account_choice
from domain.accounts.constants import CLAIM_UID_ANNOTATION, UNCLEANED
from domain.accounts.pool import PoolView, bind, has_free, offered
from domain.accounts.resources import PROGRESSING_STATES, Account, AccountClaim, oldest_first
from domain.control_annotations import paused
from domain.resource import timestamp

ENTITIES = ("", "entity-1", "entity-2")
LINKS = (("", ""), ("", ""), ("tenant", "claim-0"), ("tenant", "claim-1"), ("elsewhere", "claim-0"))
BIRTHS = (ago(minutes=1), ago(minutes=2), ago(days=1), None)
PAUSES: tuple[dict[str, str], ...] = (
    {},
    {},
    {"perdure.dev/paused": "true"},
    {"aws.managed.openshift.com/pause-reconciliation": "true"},
)
STATES = ("Ready", "Ready", "", "Creating", "InitializingRegions", "Failed")


@st.composite
def accounts(draw: st.DrawFn, name: str) -> Account:
    """A free account, as is every second, or anything else that a pool's listing may hold."""
    entity = {"id": draw(st.sampled_from(ENTITIES)), "name": ""}
    reused = draw(st.booleans())
    if draw(st.booleans()):
        birth = {"creationTimestamp": draw(st.sampled_from(BIRTHS))}
        return ready_account(name, meta=birth, spec={"legalEntity": entity}, status={"reused": reused})
    namespace, link = draw(st.sampled_from(LINKS))
    spec = {
        "awsAccountID": draw(st.sampled_from([AWS_ID, AWS_ID, ""])),
        "iamUserSecret": draw(st.sampled_from(["secret", "secret", ""])),
        "claimLink": link,
        "claimLinkNamespace": namespace,
        "legalEntity": entity,
        "accountPool": draw(st.sampled_from([POOL, POOL, "", "other"])),
        "byoc": draw(st.sampled_from([False, False, False, True])),
    }
    status = {
        "state": draw(st.sampled_from(STATES)),
        "claimed": draw(st.sampled_from([False, False, True])),
        "reused": reused,
    }
    meta: dict[str, Any] = {
        "creationTimestamp": draw(st.sampled_from(BIRTHS)),
        "annotations": draw(st.sampled_from(PAUSES)),
        **draw(st.sampled_from([{}, {}, {"deletionTimestamp": ago(seconds=1)}])),
    }
    return account(name, meta=meta, spec=spec, status=status)


@st.composite
def views(draw: st.DrawFn) -> PoolView:
    """A small pool and its claims, listed in any order."""
    names = [f"osd-creds-mgmt-{number:06}" for number in range(draw(st.integers(0, 7)))]
    claims = [
        claim(
            f"claim-{number}",
            draw(st.sampled_from(["tenant", "elsewhere"])),
            meta={"creationTimestamp": draw(st.sampled_from(BIRTHS))},
            spec={"legalEntity": {"id": draw(st.sampled_from(ENTITIES)), "name": ""}},
        )
        for number in range(draw(st.integers(0, 6)))
    ]
    return PoolView(
        pool=pool(),
        accounts=tuple(draw(st.permutations([draw(accounts(name)) for name in names]))),
        claims=tuple(draw(st.permutations(claims))),
        config=CONFIG,
        room=None,
    )


@given(views())
def test_every_claim_gets_what_a_plain_search_gives_it(view: PoolView) -> None:
    bindings, unserved = bind(view)
    found = [(each.account.metadata.name, each.claim.metadata.name, each.complete) for each in bindings]
    assert (found, list(unserved.items())) == searched(view)


@pytest.mark.parametrize("entity", ["entity-1", "entity-2"])
def test_accounts_are_put_in_order_once_for_all_claims(monkeypatch: pytest.MonkeyPatch, entity: str) -> None:
    of_one = {"legalEntity": {"id": "entity-1", "name": ""}}
    some = tuple(ready_account(f"osd-creds-mgmt-{number:06}", spec=of_one) for number in range(9))
    claims = tuple(claim(f"claim-{n}", spec={"legalEntity": {"id": entity, "name": ""}}) for n in range(9))
    ordered: list[int] = []

    def put_in_order(accounts: Iterable[Account]) -> list[Account]:
        found = oldest_first(accounts)
        ordered.append(len(found))
        return found

    monkeypatch.setattr(free_account_choice, "oldest_first", put_in_order)
    bindings, unserved = bind(PoolView(pool=pool(), accounts=some, claims=claims, config=CONFIG, room=None))
    assert len(bindings) + len(unserved) == 9
    assert ordered == [9]


@pytest.mark.parametrize(
    "fields",
    [{"protected": (AWS_ID,)}, {"config": config(payer_account_ids=f"1,{AWS_ID}")}],
    ids=["protected", "payer"],
)
def test_a_payer_or_protected_account_is_bound_to_no_new_claim(
    fields: dict[str, Any],
) -> None:
    older = ready_account("osd-creds-mgmt-aaaaaa", meta={"creationTimestamp": ago(minutes=9)})
    other = ready_account(spec={"awsAccountID": "210987654321"})
    view = PoolView(pool=pool(), accounts=(older, other), claims=(claim(),), **{"config": CONFIG, **fields}, room=None)
    assert [each.account.metadata.name for each in bind(view)[0]] == [other.metadata.name]
    alone = view.model_copy(update={"accounts": (older,)})
    assert (bind(alone)[0], has_free(alone)) == ((), False)
    link = {"claimLink": "claim", "claimLinkNamespace": "tenant", "legalEntity": {"id": "entity-1"}}
    held = ready_account("osd-creds-mgmt-aaaaaa", spec=link)
    assert [each.complete for each in bind(view.model_copy(update={"accounts": (held, other)}))[0]] == [True]


def test_a_reused_account_of_the_legal_entity_is_given_before_an_older_unused_one() -> None:
    of_one = {"legalEntity": {"id": "entity-1", "name": ""}}
    older = ready_account("osd-creds-mgmt-aaaaaa", spec=of_one, meta={"creationTimestamp": ago(days=9)})
    reused = ready_account("osd-creds-mgmt-bbbbbb", spec=of_one, status={"reused": True})
    view = PoolView(pool=pool(), accounts=(older, reused), claims=(claim(),), config=CONFIG, room=None)
    assert [each.account.metadata.name for each in bind(view)[0]] == [reused.metadata.name]


def test_an_account_released_uncleaned_is_given_to_no_claim() -> None:
    marked = ready_account(meta={"annotations": {UNCLEANED: "closed"}}, spec={"legalEntity": {"id": "entity-1"}})
    view = PoolView(pool=pool(), accounts=(marked,), claims=(claim(),), config=CONFIG, room=None)
    bindings, unserved = bind(view)
    assert bindings == ()
    assert list(unserved.values()) == ["1 released without a clean-up"]


@pytest.mark.parametrize(("uid", "complete"), [("uid-claim", [True]), ("uid-of-one-before", [])])
def test_an_account_stays_with_its_claim_and_not_with_a_later_namesake(uid: str, complete: list[bool]) -> None:
    link = {"claimLink": "claim", "claimLinkNamespace": "tenant", "legalEntity": {"id": "entity-1"}}
    held = ready_account(spec=link, meta={"annotations": {CLAIM_UID_ANNOTATION: uid}})
    view = PoolView(pool=pool(), accounts=(held,), claims=(claim(),), config=CONFIG, room=None)
    assert [each.complete for each in bind(view)[0]] == complete


# --- the plain search, whose cost is every account for every claim ---


def searched(view: PoolView) -> tuple[list[tuple[str, str, bool]], list[tuple[str, str]]]:
    bindings: list[tuple[str, str, bool]] = []
    unserved: list[tuple[str, str]] = []
    members = [each for each in view.accounts if offered(each, view.pool, view.config, view.protected)]
    left = [each for each in members if can_be_given(each)]
    for of in sorted(view.claims, key=age_of_claim):
        meta, entity = of.metadata, of.spec.legal_entity.id
        linked = [
            each
            for each in members
            if (each.spec.claim_link_namespace, each.spec.claim_link) == (meta.namespace, meta.name)
            and belongs(each, of)
        ]
        own = [each for each in sorted(left, key=age) if each.spec.legal_entity.id == entity]
        own.sort(key=lambda each: not each.status.reused)
        fresh = [each for each in sorted(left, key=age) if not each.spec.legal_entity.id and not each.status.reused]
        if linked:
            bindings.append((linked[0].metadata.name, meta.name, True))
        elif own or fresh:
            best = (own or fresh)[0]
            left.remove(best)
            bindings.append((best.metadata.name, meta.name, False))
        else:
            unserved.append((f"{meta.namespace}/{meta.name}", reasons(members, entity)))
    return bindings, unserved


def belongs(account: Account, of: AccountClaim) -> bool:
    uid, entity = account.metadata.annotations.get(CLAIM_UID_ANNOTATION), account.spec.legal_entity.id
    return entity in {"", of.spec.legal_entity.id} if uid is None else uid == of.metadata.uid


def can_be_given(of: Account) -> bool:
    spec, status = of.spec, of.status
    held = status.claimed or spec.claim_link or held_up(of) or of.metadata.deleting or spec.byoc
    return not held and status.state == "Ready" and bool(spec.aws_account_id and spec.iam_user_secret)


def held_up(of: Account) -> bool:
    return of.paused or paused(of.metadata)


def reasons(members: list[Account], entity: str) -> str:
    if not members:
        return "the pool has no accounts"
    free = [each for each in members if can_be_given(each)]
    parts = {
        "held by other claims": sum(bool(each.spec.claim_link or each.status.claimed) for each in members),
        "reserved for other legal entities": sum(each.spec.legal_entity.id not in {"", entity} for each in free),
        "not ready yet": sum(each.status.state in PROGRESSING_STATES | {""} for each in members),
        "failed": sum(each.failed for each in members),
        "paused": sum(held_up(each) for each in members),
    }
    return ", ".join(f"{number} {what}" for what, number in parts.items() if number) or "no account fits"


def age(of: Account) -> tuple[str, str]:
    born = of.metadata.creation_timestamp
    return (timestamp(born) if born else "", of.metadata.name)


def age_of_claim(of: AccountClaim) -> tuple[str, str, str]:
    born = of.metadata.creation_timestamp
    return (timestamp(born) if born else "", of.metadata.namespace, of.metadata.name)
