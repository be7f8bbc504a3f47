"""An AccountPool: the seven numbers, filling within every bound, who gets which account, the pause after failures."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import permutations
from typing import Any

import pytest
from account_objects import (
    AWS_ID,
    BORN,
    CONFIG,
    NOW,
    POOL,
    POOL_COUNTS,
    account,
    ago,
    claim,
    condition,
    config,
    pool,
    ready_account,
)

from domain.accounts.config import OperatorConfig
from domain.accounts.pool import (
    FailedAccounts,
    PoolDecision,
    PoolView,
    Room,
    belongs,
    count,
    count_failures,
    decide,
    moving,
    rest_after,
    waits,
)
from domain.accounts.resources import Account, AccountClaim, AccountPoolStatus
from domain.decision import Outcome
from domain.resource import condition_of, timestamp

ROOM = Room(active=10, limit=100, free=90, budget=30)
ENTITY = {"id": "entity-1", "name": "Entity One"}


def view(
    *accounts: Account,
    size: int = 3,
    claims: tuple[AccountClaim, ...] = (),
    room: Room | None = ROOM,
    of_config: OperatorConfig = CONFIG,
    **fields: Any,
) -> PoolView:
    return PoolView(
        pool=fields.pop("pool", pool(size=size)),
        accounts=accounts,
        claims=claims,
        config=of_config,
        room=room,
        token="pass-1",
        **fields,
    )


def names(prefix: str, number: int) -> list[str]:
    return [f"osd-creds-mgmt-{prefix}{index:05}" for index in range(number)]


def used(name: str = "osd-creds-mgmt-used22", **status: Any) -> Account:
    """An account that its claim has let go."""
    return ready_account(name, spec={"legalEntity": ENTITY}, status={"reused": True, **status})


# --- the seven numbers ---

EVERY = {
    "unclaimed_accounts": False,
    "claimed_accounts": False,
    "available_accounts": False,
    "accounts_progressing": False,
    "accounts_pending": False,
}

CENSUS = [
    ("new", account(), {"unclaimed_accounts", "accounts_pending"}),
    ("new and deleting", account(meta={"deletionTimestamp": ago(minutes=1)}), {"unclaimed_accounts"}),
    ("Creating", account(status={"state": "Creating"}), {"unclaimed_accounts", "accounts_progressing"}),
    ("regions", account(status={"state": "InitializingRegions"}), {"unclaimed_accounts", "accounts_progressing"}),
    ("verification", account(status={"state": "PendingVerification"}), {"unclaimed_accounts", "accounts_progressing"}),
    ("opting in", account(status={"state": "OptingInRegions"}), {"unclaimed_accounts"}),
    ("opted in", account(status={"state": "OptInRegionsEnabled"}), {"unclaimed_accounts"}),
    ("Ready", ready_account(), {"unclaimed_accounts", "available_accounts"}),
    ("bound", ready_account(spec={"claimLink": "c", "legalEntity": ENTITY}), set()),
    ("claimed", ready_account(spec={"legalEntity": ENTITY}, status={"claimed": True}), {"claimed_accounts"}),
    ("released", used(), set()),
    ("released, blanked", used(state=""), set()),
    ("released, initialising", used(state="InitializingRegions"), {"accounts_progressing"}),
    ("shredded", ready_account(spec={"legalEntity": ENTITY}, status={"state": "", "conditions": []}), set()),
    (
        "claimed, Failed",
        ready_account(spec={"legalEntity": ENTITY}, status={"state": "Failed", "claimed": True}),
        {"claimed_accounts"},
    ),
    *(
        (state, account(status={"state": state}), set())
        for state in (
            "Failed",
            "AccountCreationFailed",
            "AccountClientError",
            "AuthorizationError",
            "AuthenticationError",
            "UnhandledError",
            "InternalError",
        )
    ),
]


@pytest.mark.parametrize(("of", "counted"), [(of, counted) for _, of, counted in CENSUS], ids=[c[0] for c in CENSUS])
def test_an_account_counts_where_the_reference_says(of: Account, counted: set[str]) -> None:
    numbers = count(pool(), [of], ROOM).model_dump(by_alias=False)
    assert {name for name in EVERY if numbers[name]} == counted


def test_pool_size_and_limit_delta_are_published() -> None:
    status = count(pool(size=7), [], ROOM)
    assert (status.pool_size, status.aws_limit_delta) == (7, 90)
    assert count(pool(), [], Room(active=5, limit=10, free=1, budget=1, creating=3)).aws_limit_delta == 2
    assert count(pool(), [], Room(active=12, limit=10, free=-2, budget=1)).aws_limit_delta == -2


def test_the_limit_delta_stays_while_the_organization_is_not_counted() -> None:
    status = dict.fromkeys(("poolSize", "unclaimedAccounts", "claimedAccounts", "availableAccounts"), 0)
    status |= {"accountsProgressing": 0, "accountsPending": 0, "awsLimitDelta": 42}
    assert count(pool(status=status), [], None).aws_limit_delta == 42


def test_the_written_status_has_all_seven_fields() -> None:
    written = decide(view(), NOW).status.model_dump(mode="json", exclude_none=True)
    assert set(written) - {"conditions"} == POOL_COUNTS


@pytest.mark.parametrize(
    ("owners", "named", "counts"),
    [
        (None, POOL, True),
        ([], POOL, True),
        ([], "", False),  # without an owner
        ([{"kind": "AccountPool", "name": POOL}], "", True),  # unnamed: the default pool's
        ([{"kind": "AccountPool", "name": POOL}], "other", False),
        ([{"kind": "Something", "name": "x"}], POOL, False),
    ],
)
def test_accounts_of_the_default_pool(owners: Any, named: str, counts: bool) -> None:
    meta = {} if owners is None else {"ownerReferences": owners}
    assert belongs(account(meta=meta, spec={"accountPool": named}), pool(), CONFIG) is counts


def test_unnamed_accounts_belong_to_no_pool_that_is_not_the_default() -> None:
    unnamed = account(spec={"accountPool": ""})
    assert not belongs(unnamed, pool("fm"), CONFIG)
    assert belongs(unnamed, pool("fm"), config(accountpool="fm: {default: true}"))
    assert not belongs(unnamed, pool(), config(accountpool="pool: {}"))


# --- filling ---


def test_an_empty_pool_is_filled_up_to_what_may_be_in_flight() -> None:
    assert len(decide(view(size=3), NOW).create) == 3
    assert len(decide(view(size=30), NOW).create) == 5
    assert len(decide(view(size=30, in_flight_limit=8), NOW).create) == 8


def test_the_written_numbers_count_what_the_pass_makes() -> None:
    decision = decide(view(ready_account(), size=3), NOW)
    made = tuple(account(new.name) for new in decision.create)
    assert len(made) == 2
    assert decision.status == count(pool(size=3), [ready_account(), *made], ROOM)


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ((), False),
        ((account(status={"state": "PendingVerification"}, spec={"awsAccountID": AWS_ID}),), True),
        ((account(status={"state": "OptingInRegions"}, spec={"awsAccountID": AWS_ID}),), True),
        ((account(status={"state": "Failed"}, spec={"awsAccountID": AWS_ID}),), False),
    ],
)
def test_accounts_move_until_they_are_ready_or_failed(others: tuple[Account, ...], expected: bool) -> None:
    seen = view(ready_account(), *others, size=0)
    assert moving(seen, decide(seen, NOW)) is expected


def test_accounts_that_are_being_made_move() -> None:
    seen = view(size=1)
    assert moving(seen, decide(seen, NOW))


@pytest.mark.parametrize("size", [0, -4])
def test_a_pool_that_wants_nothing_is_full(size: int) -> None:
    decision = decide(view(size=size), NOW)
    assert (decision.create, decision.outcome, decision.status.pool_size) == ((), Outcome.SETTLED, size)


SUPPLY = [
    (account(), 1),
    (account(status={"state": "Creating"}, spec={"awsAccountID": AWS_ID}), 1),
    (account(status={"state": "OptingInRegions"}, spec={"awsAccountID": AWS_ID}), 1),
    (account(status={"state": "OptInRegionsEnabled"}, spec={"awsAccountID": AWS_ID}), 1),
    (ready_account(), 1),
    (ready_account(spec={"claimLink": "c", "legalEntity": ENTITY}, status={"claimed": True}), 0),
    (used(), 0),
    (account(status={"state": "Failed"}, spec={"awsAccountID": AWS_ID}), 0),
    (account(meta={"deletionTimestamp": ago(minutes=1)}), 0),
]


@pytest.mark.parametrize(("of", "supplied"), SUPPLY)
def test_accounts_that_count_as_supply(of: Account, supplied: int) -> None:
    assert len(decide(view(of, size=3), NOW).create) == 3 - supplied


def test_scaling_down_deletes_nothing() -> None:
    full = [ready_account(name) for name in names("b", 4)]
    decision = decide(view(*full, size=1), NOW)
    assert (decision.create, decision.outcome) == ((), Outcome.SETTLED)


@pytest.mark.parametrize(
    "pause", [{"perdure.dev/paused": "true"}, {"aws.managed.openshift.com/pause-reconciliation": "true"}]
)
def test_paused_accounts_count_as_supply_and_hold_no_place_in_flight(pause: dict[str, str]) -> None:
    held = [account(name, meta={"annotations": pause}) for name in names("b", 5)]
    assert len(decide(view(*held, size=20), NOW).create) == 5
    assert decide(view(*held, size=5), NOW).create == ()


def test_accounts_without_an_aws_account_hold_their_place_in_flight() -> None:
    unborn = [account(name) for name in names("b", 3)]
    assert len(decide(view(*unborn, size=20), NOW).create) == 2
    born = [account(name, spec={"awsAccountID": AWS_ID}, status={"state": "Creating"}) for name in names("b", 3)]
    assert len(decide(view(*born, size=20), NOW).create) == 5


@pytest.mark.parametrize(
    ("room", "created", "waits_for", "reason"),
    [
        (None, 0, ("Organization",), None),
        (Room(active=5, limit=None, free=0, budget=30), 0, ("Organization",), None),
        (Room(active=100, limit=100, free=0, budget=30), 0, ("AccountLimit",), "AccountLimit"),
        (Room(active=101, limit=100, free=-1, budget=30), 0, ("AccountLimit",), "AccountLimit"),
        (Room(active=98, limit=100, free=2, budget=30), 2, ("AccountLimit",), "AccountLimit"),
        (Room(active=5, limit=100, free=95, budget=0), 0, ("CreateBudget",), "CreateBudget"),
        (Room(active=5, limit=100, free=95, budget=-3), 0, ("CreateBudget",), "CreateBudget"),
        (Room(active=5, limit=100, free=95, budget=1), 1, ("CreateBudget",), "CreateBudget"),
        (ROOM, 3, ("Account",), None),
    ],
)
def test_the_organizations_room_bounds_creation_and_stalling_is_a_condition(
    room: Room | None, created: int, waits_for: tuple[str, ...], reason: str | None
) -> None:
    decision = decide(view(size=3, room=room), NOW)
    assert len(decision.create) == created
    assert decision.waits_for == waits_for
    stalled = condition_of(decision.status.conditions, "Stalled")
    assert (stalled.reason if stalled else None) == reason


def test_accounts_that_wait_for_a_permit_use_up_the_room_they_wait_for() -> None:
    """Else a pool at the limit would go on making Accounts that only wait to be deleted after 25 minutes."""
    waiting = [account(name) for name in names("b", 2)]
    tight = Room(active=98, limit=100, free=2, budget=30)
    assert decide(view(*waiting, size=10, room=tight), NOW).create == ()
    spent = Room(active=5, limit=100, free=95, budget=2)
    assert decide(view(*waiting, size=10, room=spent), NOW).create == ()


def test_accounts_of_other_pools_use_up_the_same_room() -> None:
    others = [account(name, spec={"accountPool": "other"}) for name in names("b", 2)]
    tight = Room(active=98, limit=100, free=2, budget=30)
    assert decide(view(*others, size=10, room=tight), NOW).create == ()


def test_a_spent_budget_says_when_it_has_room_again() -> None:
    until = NOW + timedelta(minutes=20)
    decision = decide(view(room=Room(active=5, limit=100, free=95, budget=0, budget_free_at=until)), NOW)
    assert decision.deadline == until
    assert "retry accountpool" in decision.why


@pytest.mark.parametrize(
    ("of_config", "says"),
    [
        (config(accountpool=None), "key accountpool: missing"),
        (config(accountpool="pool: [1"), "cannot be read"),
        (config(accountpool="pool: {servicequotas: {default: {L-1: many}}}"), "cannot be read"),
        (config(account_limit=None), "key account-limit: missing"),
        (config(account_limit="many"), "'many' is not a whole number"),
        (config(fedramp="maybe"), "key fedramp: 'maybe' is neither true nor false"),
        (
            config(account_limit="many", accountpool=None),
            "key accountpool: missing; key account-limit: 'many'",
        ),
    ],
)
def test_without_a_readable_key_nothing_is_created_whatever_room_was_counted(
    of_config: OperatorConfig, says: str
) -> None:
    decision = decide(view(of_config=of_config), NOW)
    assert (decision.create, decision.waits_for) == ((), ("ConfigMap",))
    assert says in decision.why
    stalled = condition_of(decision.status.conditions, "Stalled")
    assert stalled is not None
    assert says in (stalled.message or "")


def test_a_malformed_quota_of_another_pool_blocks_no_other() -> None:
    text = "pool: {default: true}\nother: {servicequotas: {default: {L-1: many}}}"
    assert decide(view(of_config=config(accountpool=text)), NOW).create
    stopped = decide(view(pool=pool("other"), of_config=config(accountpool=text)), NOW)
    assert (stopped.create, stopped.waits_for) == ((), ("ConfigMap",))


def test_a_pool_without_an_entry_creates_accounts_without_quotas() -> None:
    new = decide(view(pool=pool("loner"), size=1), NOW).create[0]
    assert (new.regional_service_quotas, new.global_service_quotas) == ({}, {})


def test_a_pools_quotas_come_from_its_entry() -> None:
    text = """
pool:
  default: true
  servicequotas:
    default: {L-1216C47A: '750'}
    us-east-1: {L-1216C47A: '900'}
  globalservicequotas: {L-FE177D64: '5000'}
"""
    new = decide(view(size=1, of_config=config(accountpool=text)), NOW).create[0]
    quotas = {region: {c: q.value for c, q in codes.items()} for region, codes in new.regional_service_quotas.items()}
    assert quotas == {"default": {"L-1216C47A": 750}, "us-east-1": {"L-1216C47A": 900}}
    assert new.global_service_quotas["L-FE177D64"].model_dump() == {"value": 5000, "status": ""}


def test_new_names_are_upstreams_and_the_same_in_each_attempt_of_a_pass() -> None:
    first, again = decide(view(size=5), NOW).create, decide(view(size=5), NOW).create
    assert first == again
    assert len({new.name for new in first}) == 5
    for new in first:
        assert new.name == f"osd-creds-mgmt-{new.iam_user_id}"
        assert len(new.iam_user_id) == 6
        assert set(new.iam_user_id) <= set("bcdfghjklmnpqrstvwxz2456789")


def test_a_later_pass_takes_other_names() -> None:
    first = {new.name for new in decide(view(size=5), NOW).create}
    later = {new.name for new in decide(view(size=5).model_copy(update={"token": "pass-2"}), NOW).create}
    assert not first & later


def test_a_name_that_is_taken_is_never_given_again() -> None:
    taken = decide(view(size=1), NOW).create[0].name
    elsewhere = account(taken, spec={"accountPool": "other"})
    assert decide(view(elsewhere, size=1), NOW).create[0].name != taken


def test_a_deleted_pool_creates_and_binds_nothing() -> None:
    gone = pool(meta={"deletionTimestamp": ago(seconds=1)})
    decision = decide(view(ready_account(), pool=gone, claims=(claim(),)), NOW)
    assert (decision.create, decision.bind) == ((), ())


# --- the condition Stalled ---


def test_a_pool_whose_accounts_wait_for_room_is_stalled_though_it_has_made_them_all() -> None:
    """Three pools that fill at the same moment see the same room."""
    at_limit = {**condition("Pending"), "reason": "AWSAccountLimitReached"}
    stuck = account("osd-creds-mgmt-waits1", status={"state": "", "conditions": [at_limit]})
    decision = decide(view(ready_account(), stuck, size=2, room=Room(active=9, limit=9, free=0, budget=30)), NOW)
    stalled = condition_of(decision.status.conditions, "Stalled")
    assert stalled is not None
    assert (stalled.reason, stalled.message) == ("AccountLimit", "1 accounts wait for room in the organization")
    assert (decision.create, decision.outcome, decision.waits_for) == ((), Outcome.WAITING, ("AccountLimit",))
    unlimited = decide(view(ready_account(), stuck, size=2, of_config=config(account_limit=None)), NOW)
    assert unlimited.waits_for == ("ConfigMap",), "what is missing is the limit itself"
    landed = account("osd-creds-mgmt-waits1", spec={"awsAccountID": AWS_ID}, status={"conditions": [at_limit]})
    assert decide(view(ready_account(), landed, size=2), NOW).outcome is Outcome.SETTLED


def stalled_pool(**fields: str) -> Any:
    numbers = AccountPoolStatus(pool_size=3).model_dump()
    stalled = {**condition("Stalled", entered=ago(hours=1)), "reason": "AccountLimit", **fields}
    del stalled["lastProbeTime"]
    return pool(status={**numbers, "conditions": [stalled]})


def test_stalled_goes_when_creation_goes_on() -> None:
    assert decide(view(pool=stalled_pool()), NOW).status.conditions == ()


def test_stalled_keeps_since_when_while_its_words_change() -> None:
    full = Room(active=100, limit=100, free=0, budget=30)
    before = decide(view(pool=stalled_pool(message="the organization has room for 1 more accounts"), room=full), NOW)
    stalled = condition_of(before.status.conditions, "Stalled")
    assert stalled is not None
    assert stalled.message == "the organization has room for 0 more accounts"
    assert stalled.last_transition_time == ago(hours=1)


def test_a_stalled_pool_writes_nothing_new_as_time_goes_by() -> None:
    full = Room(active=100, limit=100, free=0, budget=30)
    first = decide(view(room=full), NOW)
    again = view(pool=pool(status=first.status.model_dump()), room=full)
    assert decide(again, NOW + timedelta(hours=3)).status == first.status


# --- the pause after failures ---


@pytest.mark.parametrize(
    ("dead", "minutes"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 16), (6, 32), (7, 60), (8, 60), (50, 60)]
)
def test_the_pause_doubles_from_one_minute_to_an_hour(dead: int, minutes: int) -> None:
    deaths = FailedAccounts(names=tuple(names("d", dead)), last_at=NOW)
    until = NOW + timedelta(minutes=minutes)
    assert deaths.pause_until == until
    paused = decide(view(deaths=deaths), until - timedelta(seconds=1))
    assert (paused.create, paused.deadline, paused.waits_for) == ((), until, ("AccountCreation",))
    stalled = condition_of(paused.status.conditions, "Stalled")
    assert stalled is not None
    assert timestamp(until) in (stalled.message or "")
    assert decide(view(deaths=deaths), until).create


FIRST, SECOND = "osd-creds-mgmt-bbbbbb", "osd-creds-mgmt-cccccc"
NOBODY: frozenset[str] = frozenset()


def test_each_reported_failure_counts_once() -> None:
    gone = count_failures(FailedAccounts(), [account(FIRST)], frozenset({FIRST, SECOND}), frozenset({SECOND}), NOW)
    assert gone == FailedAccounts(names=(SECOND,), last_at=NOW)
    later = count_failures(gone, [account(FIRST)], frozenset({FIRST}), frozenset({SECOND}), NOW + timedelta(minutes=5))
    assert later == gone


def test_an_account_that_a_person_deleted_is_no_death() -> None:
    assert count_failures(FailedAccounts(), [], frozenset({FIRST, SECOND}), NOBODY, NOW) == FailedAccounts()


def test_an_account_that_got_further_ends_the_mourning() -> None:
    before = FailedAccounts(names=(SECOND,), last_at=NOW)
    born = account(FIRST, spec={"awsAccountID": AWS_ID})
    assert count_failures(before, [born], frozenset({FIRST}), NOBODY, NOW) == FailedAccounts()
    assert count_failures(before, [born], NOBODY, NOBODY, NOW) == before
    assert count_failures(before, [born], frozenset({FIRST}), frozenset({"third"}), NOW).names == ("third",)


# --- matching ---


def chosen(decision: PoolDecision) -> dict[str, str]:
    return {binding.claim.metadata.name: binding.account.metadata.name for binding in decision.bind}


def bind(*accounts: Account, claims: tuple[AccountClaim, ...] = (claim(),)) -> dict[str, str]:
    """Who gets what, which no order of the listing may change."""
    found = [chosen(decide(view(*order, claims=claims, size=0), NOW)) for order in permutations(accounts)]
    assert all(each == found[0] for each in found)
    return found[0]


def test_a_reused_account_of_the_same_legal_entity_comes_before_a_fresh_one() -> None:
    old_and_fresh = ready_account("osd-creds-mgmt-bbbbbb", meta={"creationTimestamp": ago(days=900)})
    assert bind(old_and_fresh, used()) == {"claim": "osd-creds-mgmt-used22"}


def test_the_oldest_fresh_account_comes_first() -> None:
    young = ready_account("osd-creds-mgmt-bbbbbb", meta={"creationTimestamp": ago(days=1)})
    old = ready_account("osd-creds-mgmt-cccccc", meta={"creationTimestamp": ago(days=2)})
    assert bind(young, old) == {"claim": "osd-creds-mgmt-cccccc"}


UNFIT = [
    (
        "of another legal entity, reused",
        used().model_copy(
            update={
                "spec": used().spec.model_copy(
                    update={"legal_entity": account(spec={"legalEntity": {"id": "else", "name": ""}}).spec.legal_entity}
                )
            }
        ),
    ),
    ("of another legal entity, its reuse blanked", ready_account(spec={"legalEntity": {"id": "else", "name": "E"}})),
    ("reused by an unknown claim", ready_account(status={"reused": True})),
    (
        "paused by upstream's annotation",
        ready_account(meta={"annotations": {"aws.managed.openshift.com/pause-reconciliation": "true"}}),
    ),
    ("paused by ours", ready_account(meta={"annotations": {"perdure.dev/paused": "true"}})),
    ("deleting", ready_account(meta={"deletionTimestamp": ago(seconds=1)})),
    ("byoc", ready_account(spec={"byoc": True})),
    ("claimed", ready_account(status={"claimed": True})),
    ("linked to another claim", ready_account(spec={"claimLink": "else", "claimLinkNamespace": "n"})),
    ("without an AWS account", ready_account(spec={"awsAccountID": ""})),
    ("without its key", ready_account(spec={"iamUserSecret": ""})),
    ("not Ready", ready_account(status={"state": "PendingVerification"})),
    ("Failed", ready_account(status={"state": "Failed"})),
    ("of another pool", ready_account(spec={"accountPool": "other"})),
]


@pytest.mark.parametrize("of", [of for _, of in UNFIT], ids=[what for what, _ in UNFIT])
def test_an_unfit_account_is_never_given(of: Account) -> None:
    assert bind(of) == {}


@pytest.mark.parametrize(("owners", "named"), [([], ""), ([{"kind": "Something", "name": "x"}], ""), ([], POOL)])
def test_an_account_that_no_pool_has_made_is_given_too(owners: list[dict[str, str]], named: str) -> None:
    """People make Accounts for AWS accounts that they have, and no pool counts those that name none."""
    by_hand = ready_account(meta={"ownerReferences": owners}, spec={"accountPool": named})
    assert bind(by_hand) == {"claim": by_hand.metadata.name}
    other = decide(view(by_hand, pool=pool("other", size=0), claims=(claim(spec={"accountPool": "other"}),)), NOW)
    assert (other.bind, other.unserved) == ((), {"tenant/claim": "the pool has no accounts"})


def test_each_claim_gets_one_account_with_the_oldest_claim_first() -> None:
    first = claim("first", meta={"creationTimestamp": ago(minutes=9)})
    second = claim("second", meta={"creationTimestamp": ago(minutes=8)})
    third = claim("third", meta={"creationTimestamp": ago(minutes=7)})
    accounts = [ready_account(name) for name in names("b", 2)]
    for order in permutations((first, second, third)):
        decision = decide(view(*accounts, claims=order, size=0), NOW)
        assert set(chosen(decision)) == {"first", "second"}
        assert len(set(chosen(decision).values())) == 2
        assert set(decision.unserved) == {"tenant/third"}


def test_a_claim_that_an_account_names_already_is_completed_not_given_a_second_one() -> None:
    linked = ready_account(
        "osd-creds-mgmt-bbbbbb",
        spec={"claimLink": "claim", "claimLinkNamespace": "tenant", "legalEntity": ENTITY},
        status={"claimed": True},
    )
    fresh = ready_account("osd-creds-mgmt-cccccc")
    decision = decide(view(linked, fresh, claims=(claim(),), size=0), NOW)
    assert chosen(decision) == {"claim": "osd-creds-mgmt-bbbbbb"}
    assert decision.bind[0].complete


def test_a_binding_is_completed_even_if_the_claims_legal_entity_was_edited_meanwhile() -> None:
    half = ready_account(
        "osd-creds-mgmt-bbbbbb", spec={"claimLink": "claim", "claimLinkNamespace": "tenant", "legalEntity": ENTITY}
    )
    edited = claim(spec={"legalEntity": {"id": "entity-2", "name": "Entity Two"}})
    decision = decide(view(half, ready_account("osd-creds-mgmt-cccccc"), claims=(edited,), size=0), NOW)
    assert chosen(decision) == {"claim": "osd-creds-mgmt-bbbbbb"}
    assert decision.bind[0].complete


def test_an_account_that_names_an_earlier_claim_of_another_entity_is_not_completed() -> None:
    """A claim of that name was abandoned; who comes under its name later gets none of its secrets."""
    abandoned = ready_account(
        "osd-creds-mgmt-bbbbbb",
        recorded=False,
        spec={"claimLink": "claim", "claimLinkNamespace": "tenant", "legalEntity": {"id": "else", "name": "E"}},
    )
    assert bind(abandoned) == {}
    assert bind(abandoned, ready_account("osd-creds-mgmt-cccccc")) == {"claim": "osd-creds-mgmt-cccccc"}


def test_unbound_claims_get_a_reason() -> None:
    members = [
        ready_account("osd-creds-mgmt-bbbbbb", spec={"claimLink": "c", "claimLinkNamespace": "n"}),
        ready_account("osd-creds-mgmt-cccccc", spec={"legalEntity": {"id": "else", "name": ""}}),
        account("osd-creds-mgmt-dddddd"),
        account("osd-creds-mgmt-ffffff", status={"state": "Failed"}, spec={"awsAccountID": AWS_ID}),
    ]
    decision = decide(view(*members, claims=(claim(),), size=0), NOW)
    assert decision.unserved == {
        "tenant/claim": "1 held by other claims, 1 reserved for other legal entities, 1 not ready yet, 1 failed"
    }
    assert (decision.outcome, decision.waits_for) == (Outcome.WAITING, ("Account",))


@pytest.mark.parametrize(("number", "seconds"), [(3, 0.3), (40, 4), (200, 8)])
def test_a_pass_follows_soon_where_there_are_few_accounts_to_read(number: int, seconds: float) -> None:
    creating = [account(name, status={"state": "Creating"}) for name in names("way", number)]
    seen = view(*creating, size=number)

    assert rest_after(seen, decide(seen, NOW)) == timedelta(seconds=seconds)


WAITING = [
    ("new", claim(), True),
    ("pending", claim(status={"state": "Pending", "conditions": []}), True),
    ("of another pool", claim(spec={"accountPool": "other"}), False),
    ("linked", claim(spec={"accountLink": "a"}), False),
    ("deleting", claim(meta={"deletionTimestamp": ago(seconds=1)}), False),
    ("byoc", claim(spec={"byoc": True}), False),
    ("sts", claim(spec={"manualSTSMode": True}), False),
    ("fake", claim(meta={"annotations": {"managed.openshift.com/fake": "true"}}), False),
    ("fleet manager's of the default pool", claim(spec={"fleetManagerConfig": {"trustedARN": "arn"}}), True),
    ("in error", claim(status={"state": "Error", "conditions": []}), False),
    ("without entity", claim(spec={"legalEntity": {"id": "", "name": ""}}), False),
    ("of a blank entity", claim(spec={"legalEntity": {"id": " ", "name": ""}}), False),
    ("with a foreign Secret", claim(spec={"awsCredentialSecret": {"name": "aws", "namespace": "else"}}), False),
    ("without Secret", claim(spec={"awsCredentialSecret": {"name": "", "namespace": ""}}), False),
    ("paused", claim(meta={"annotations": {"perdure.dev/paused": "true"}}), False),
]


@pytest.mark.parametrize(("of", "waiting"), [(of, w) for _, of, w in WAITING], ids=[what for what, _, _ in WAITING])
def test_only_a_claim_that_could_use_an_account_waits_for_one(of: AccountClaim, waiting: bool) -> None:
    assert waits(of, pool(), CONFIG) is waiting


def test_a_claim_of_a_named_pool_waits_for_that_pool() -> None:
    assert waits(claim(spec={"accountPool": "fm"}), pool("fm"), CONFIG)
    assert not waits(claim(), pool("fm"), CONFIG)


def test_the_moment_of_birth_is_read_as_utc() -> None:
    assert isinstance(account().metadata.creation_timestamp, datetime)
    assert account().metadata.creation_timestamp == BORN
