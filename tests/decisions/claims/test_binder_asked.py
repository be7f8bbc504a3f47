"""The binder's workflow remembers each claim that asks once, without comparing it with all that have asked before."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from claim_domain import BINDER

from activities.claims.binder_requests import Asking
from domain.carried_memory import Carry
from domain.claims import RESOURCE_CLAIM
from domain.claims.passes import MOST_ASKED, Asked
from domain.identity import Key
from workflows.claims import ClaimBinderWorkflow


def claim(number: int) -> Key:
    return Key(kind=RESOURCE_CLAIM.name, namespace="users", name=f"claim-{number}", uid=f"uid-{number}")


def batch(binder: ClaimBinderWorkflow, *meanwhile: Key) -> tuple[Key, ...]:
    """One batch, during which these ask; who it looked at."""
    look = binder.observation()
    for asks in meanwhile:
        binder.serve(asks)
    binder.observed()
    return tuple(look.asked)  # type: ignore[attr-defined]


def test_a_claim_that_asks_is_compared_with_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []
    plain = Key.__eq__

    def equal(one: Key, other: object) -> bool:
        compared.append(one.name)
        return plain(one, other)

    binder = ClaimBinderWorkflow(Carry(key=BINDER))
    claims = [claim(number) for number in range(20)]
    monkeypatch.setattr(Key, "__eq__", equal)
    for each in claims:
        binder.serve(each)
    assert compared == []
    assert batch(binder) == tuple(claims)


def test_each_claim_is_remembered_once_until_a_batch_has_observed_it_after_it_asked() -> None:
    binder = ClaimBinderWorkflow(Carry(key=BINDER))
    for number in (0, 1, 0):
        binder.serve(claim(number))
    assert batch(binder, claim(2), claim(1), claim(2)) == (claim(0), claim(1))
    assert batch(binder) == (claim(1), claim(2))
    assert batch(binder) == ()
    binder.serve(claim(0))
    assert batch(binder) == (claim(0),)


def test_a_claim_that_the_run_before_has_handed_over_is_not_remembered_twice() -> None:
    known = {"asked": [claim(0).model_dump(mode="json")]}
    binder = ClaimBinderWorkflow(Carry(key=BINDER, known=known))
    for number in (0, 1):
        binder.serve(claim(number))
    assert batch(binder) == (claim(0), claim(1))


def test_no_batch_is_given_more_claims_than_a_message_should_hold() -> None:
    binder = ClaimBinderWorkflow(Carry(key=BINDER))
    claims = tuple(claim(number) for number in range(2 * MOST_ASKED + 1))
    for start in range(0, len(claims), MOST_ASKED):
        binder.serve_all(Asked(claims=claims[start : start + MOST_ASKED]))
    for start in (0, MOST_ASKED, 2 * MOST_ASKED):
        assert binder.dirty
        binder.dirty = False
        assert batch(binder) == claims[start : start + MOST_ASKED]
    assert not binder.dirty


async def test_a_crowd_that_asks_at_once_sends_a_few_signals() -> None:
    sent: list[Sequence[Key]] = []

    async def send(claims: Sequence[Key]) -> None:
        sent.append(claims)

    asking = Asking(send)
    claims = [claim(number) for number in range(MOST_ASKED + 1)]
    await asyncio.gather(*(asking.ask(each) for each in (*claims, *claims)))
    assert [len(each) for each in sent] == [MOST_ASKED, 1]
    await asking.ask(claim(0))
    assert list(sent[-1]) == [claim(0)]


async def test_a_claim_whose_question_could_not_be_sent_is_notified() -> None:
    async def send(claims: Sequence[Key]) -> None:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await Asking(send).ask(claim(0))
