"""What the organization hands out: permits in a fixed order and within every bound, and when cases are looked at."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise, permutations
from typing import Any

import pytest
from account_objects import AWS_ID, CONFIG, NOW, account, ago, condition, config, pool, ready_account

from domain.accounts.config import OperatorConfig
from domain.accounts.creation_permits import PERMIT_LIFETIME, Verdicts, adopted, judge, room_ages, swept, wants_account
from domain.accounts.naming import email_of
from domain.accounts.observed import Verdict
from domain.accounts.organization import Budget, Census, CreateAttempt, MemberAccount, OrganizationMemory
from domain.accounts.pool import count
from domain.accounts.resources import Account, AccountPool
from domain.accounts.support_case_polling import next_case_looks, open_cases
from domain.decision import earliest
from domain.identity import Key
from domain.resource import timestamp

POLL = timedelta(minutes=1)


def wanting(number: int, prefix: str = "b") -> list[Account]:
    """Accounts without an AWS account, the oldest first."""
    return [
        account(f"osd-creds-mgmt-{prefix}{index:05}", meta={"creationTimestamp": ago(minutes=20 - index)})
        for index in range(number)
    ]


def member(index: int, name: str = "", state: str = "ACTIVE", email: str = "") -> MemberAccount:
    return MemberAccount(
        id=f"{index:012}", name=name or f"member-{index}", email=email or f"m{index}@example.com", state=state
    )


def attempt(name: str, state: str = "SUCCEEDED", *, at: datetime = NOW - timedelta(minutes=5)) -> CreateAttempt:
    return CreateAttempt(name=name, request_id=f"car-{name}", state=state, requested_at=at)


def census(active: int = 10, *attempts: CreateAttempt, more: tuple[MemberAccount, ...] = ()) -> Census:
    accounts = (*(member(index) for index in range(active)), *more)
    return Census(taken_at=NOW, accounts=accounts, attempts=attempts)


def evaluated(
    accounts: list[Account],
    of: Census,
    *,
    granted: dict[str, datetime] | None = None,
    of_config: OperatorConfig = CONFIG,
    budget: Budget | None = None,
    pools: tuple[AccountPool, ...] = (),
    now: datetime = NOW,
    passed: dict[str, str] | None = None,
) -> Verdicts:
    bounds = budget or Budget()
    return judge(accounts, pools, of_config, of, granted or {}, bounds, "redhat.com", now, (), passed or {})


def verdicts(found: Verdicts) -> list[str]:
    return [permit.verdict.value for permit in found.permits.values()]


def test_a_count_without_waiting_accounts_keeps_permits_that_are_still_valid() -> None:
    soon, past = NOW + timedelta(seconds=90), NOW - timedelta(seconds=1)
    gone, landed, late = (f"osd-creds-mgmt-{name}" for name in ("gone22", "landed", "late22"))
    known = OrganizationMemory(granted={gone: soon, landed: soon, late: past})
    after = swept(known, [ready_account(landed)], [], limit=12, active=10, creating=(), budget=Budget(), now=NOW)
    assert after.granted == {gone: soon}
    assert after.room is not None
    assert after.room.free == 1
    asking = evaluated(wanting(2), census(), granted=after.granted, of_config=config(account_limit="12"))
    assert verdicts(asking) == ["Granted", "LimitReached"]


def test_a_count_without_requests_includes_accounts_being_created() -> None:
    soon = NOW + timedelta(seconds=90)
    known = OrganizationMemory(granted={"used": soon, "unused": soon})
    after = swept(known, [], [], limit=100, active=10, creating={"used", "elsewhere"}, budget=Budget(), now=NOW)
    assert after.room is not None
    assert (after.room.creating, after.room.free) == (2, 87)
    assert count(pool(), [], after.room).aws_limit_delta == 88


def test_the_oldest_come_first_whatever_the_order_of_the_list() -> None:
    accounts = wanting(4)
    for order in permutations(accounts):
        found = evaluated(list(order), census(), budget=Budget(in_flight=2))
        assert verdicts(found) == ["Granted", "Granted", "Queued", "Queued"]
        assert list(found.permits) == [a.metadata.name for a in accounts]


def test_a_permit_is_good_for_two_minutes() -> None:
    found = evaluated(wanting(1), census())
    (permit,) = found.permits.values()
    assert permit.until == NOW + PERMIT_LIFETIME == NOW + timedelta(minutes=2)
    assert found.granted == {"osd-creds-mgmt-b00000": permit.until}


def test_an_open_permit_stays_the_same_and_an_expired_one_is_renewed() -> None:
    until = NOW + timedelta(seconds=30)
    accounts = wanting(1)
    name = accounts[0].metadata.name
    remaining = evaluated(accounts, census(), granted={name: until})
    assert remaining.permits[name].until == until
    renewed = evaluated(accounts, census(), granted={name: until}, now=until)
    assert renewed.permits[name].until == until + PERMIT_LIFETIME


def test_a_workflow_that_lost_its_memory_gives_the_same_permits_again() -> None:
    accounts = wanting(8)
    first = evaluated(accounts, census())
    again = evaluated(accounts, census(), granted={})
    assert list(first.granted) == list(again.granted)


# --- the limit ---


@pytest.mark.parametrize(("active", "permits"), [(98, 2), (99, 1), (100, 0), (150, 0)])
def test_permits_end_at_the_limit_which_counts_every_active_account(active: int, permits: int) -> None:
    found = evaluated(wanting(3), census(active))
    assert verdicts(found).count("Granted") == permits
    assert verdicts(found)[permits:] == ["LimitReached"] * (3 - permits)


def test_the_limit_counts_what_is_being_created_and_what_is_promised() -> None:
    elsewhere = attempt("somebody-else", "IN_PROGRESS")
    promised = {"osd-creds-mgmt-b00000": NOW + timedelta(minutes=1)}
    found = evaluated(wanting(2), census(98, elsewhere), granted=promised)
    assert verdicts(found) == ["Granted", "LimitReached"]
    assert found.room.free == 0


def test_the_room_says_how_many_requests_are_under_way() -> None:
    assert evaluated(wanting(1), census(10, attempt("a", "IN_PROGRESS"), attempt("b"))).room.creating == 1


def test_closed_accounts_do_not_count() -> None:
    closed = tuple(member(1000 + i, state="SUSPENDED") for i in range(50))
    assert verdicts(evaluated(wanting(1), census(99, more=closed))) == ["Granted"]


def test_a_renewed_permit_after_a_failed_request_counts_as_promised() -> None:
    """Its name is in AWS's list already, but for the request that failed."""
    accounts = wanting(2)
    failed = attempt(accounts[0].metadata.name, "FAILED", at=NOW - timedelta(minutes=3))
    renewed = {accounts[0].metadata.name: NOW + timedelta(minutes=1)}
    found = evaluated(accounts, census(99, failed), granted=renewed)
    assert verdicts(found) == ["Granted", "LimitReached"]


def test_a_permit_of_an_account_deleted_meanwhile_counts_until_it_ends() -> None:
    """Its CreateAccount may be under way."""
    until = NOW + timedelta(minutes=1)
    gone = {"osd-creds-mgmt-gone22": until}
    assert verdicts(evaluated(wanting(1), census(99), granted=gone)) == ["LimitReached"]
    assert verdicts(evaluated(wanting(1), census(99), granted=gone, now=until)) == ["Granted"]


def test_a_permit_that_was_used_and_has_ended_makes_way_at_once() -> None:
    used = "osd-creds-mgmt-used22"
    until = NOW + timedelta(minutes=1)
    done = attempt(used, "SUCCEEDED", at=NOW - timedelta(seconds=30))
    found = evaluated(wanting(5), census(10, done), granted={used: until})
    assert verdicts(found) == ["Granted"] * 5


@pytest.mark.parametrize("limit", [None, "many", ""])
def test_without_a_readable_limit_nothing_is_created(limit: str | None) -> None:
    found = evaluated(wanting(1), census(), of_config=config(account_limit=limit))
    (permit,) = found.permits.values()
    assert permit.verdict is Verdict.LIMIT_REACHED, "an Account shows it, as at the limit"
    assert "account-limit" in permit.message
    assert found.room.limit is None


@pytest.mark.parametrize("limit", [None, "5"])
def test_in_govcloud_the_limit_stops_pools_and_no_account_that_exists(limit: str | None) -> None:
    found = evaluated(wanting(1), census(10), of_config=config(account_limit=limit, fedramp="true"))
    assert verdicts(found) == ["Granted"]


# --- the create budget ---


def test_the_budget_counts_every_request_of_the_window_failed_ones_too() -> None:
    spent = [attempt(f"a{i}", "FAILED" if i % 2 else "SUCCEEDED", at=NOW - timedelta(minutes=i)) for i in range(29)]
    found = evaluated(wanting(2), census(10, *spent))
    assert verdicts(found) == ["Granted", "BudgetSpent"]
    message = "the create budget is spent: 29 accounts within 60 minutes"
    assert list(found.permits.values())[1].message == message


@pytest.mark.parametrize(
    "lifted", [(), (pool(meta={"annotations": {"perdure.dev/create-budget-since": ago(minutes=50)}}),)]
)
def test_a_verdict_of_no_budget_stays_the_same_while_nothing_changes(lifted: tuple[AccountPool, ...]) -> None:
    spent = [attempt(f"a{i}", at=NOW - timedelta(minutes=5)) for i in range(30)]
    looks = [
        evaluated(wanting(1), census(10, *spent), pools=lifted, now=NOW + timedelta(minutes=later))
        for later in range(3)
    ]
    assert verdicts(looks[0]) == ["BudgetSpent"]
    assert looks[0].permits == looks[1].permits == looks[2].permits


def test_the_budget_has_room_again_when_its_oldest_request_leaves_the_window() -> None:
    oldest = NOW - timedelta(minutes=40)
    spent = [attempt(f"a{i}", at=oldest + timedelta(minutes=i)) for i in range(30)]
    found = evaluated(wanting(1), census(10, *spent))
    assert (verdicts(found), found.room.budget) == (["BudgetSpent"], 0)
    assert found.room.budget_free_at == oldest + timedelta(hours=1)
    later = evaluated(wanting(1), census(10, *spent), now=oldest + timedelta(hours=1))
    assert verdicts(later) == ["Granted"]


def test_the_room_is_measured_again_when_time_gives_it_back_without_requests() -> None:
    oldest = NOW - timedelta(minutes=40)
    spent = [attempt(f"a{i}", at=oldest + timedelta(minutes=i)) for i in range(30)]
    known = OrganizationMemory(room=evaluated([], census(10, *spent)).room)
    assert not room_ages(known, oldest + timedelta(minutes=59))
    assert room_ages(known, oldest + timedelta(hours=1))
    granted = OrganizationMemory(granted={"one": NOW})
    assert not room_ages(granted, NOW - timedelta(seconds=1))
    assert room_ages(granted, NOW)


def test_a_persons_retry_lets_the_budget_count_from_then_on() -> None:
    spent = [attempt(f"a{i}", at=NOW - timedelta(minutes=10)) for i in range(30)]
    lifted = pool(meta={"annotations": {"perdure.dev/create-budget-since": timestamp(NOW - timedelta(minutes=9))}})
    assert verdicts(evaluated(wanting(1), census(10, *spent), pools=(lifted,))) == ["Granted"]
    early = pool(meta={"annotations": {"perdure.dev/create-budget-since": timestamp(NOW - timedelta(days=9))}})
    assert verdicts(evaluated(wanting(1), census(10, *spent), pools=(early,))) == ["BudgetSpent"]
    for odd in ("yesterday", "9999-12-31T23:59:59Z"):
        garbled = pool(meta={"annotations": {"perdure.dev/create-budget-since": odd}})
        assert verdicts(evaluated(wanting(1), census(10, *spent), pools=(garbled,))) == ["BudgetSpent"]


# --- in flight ---


def test_no_more_than_the_configured_number_are_unanswered_at_once() -> None:
    running = [attempt(f"x{i}", "IN_PROGRESS") for i in range(3)]
    found = evaluated(wanting(5), census(10, *running))
    assert verdicts(found) == ["Granted", "Granted", "Queued", "Queued", "Queued"]
    assert list(found.permits.values())[2].message == "waits its turn: 5 accounts are being created"


def test_a_permit_and_its_own_request_hold_one_place() -> None:
    accounts = wanting(6)
    name = accounts[0].metadata.name
    running = attempt(name, "IN_PROGRESS", at=NOW)
    found = evaluated(accounts, census(10, running), granted={name: NOW + timedelta(minutes=1)})
    assert verdicts(found) == ["Granted"] * 5 + ["Queued"]


# --- adoption ---


def test_an_account_of_that_name_and_mail_is_adopted_even_at_the_limit() -> None:
    accounts = wanting(1)
    name = accounts[0].metadata.name
    there = member(777, name=name, email=email_of(name, "redhat.com"))
    permit = evaluated(accounts, census(100, more=(there,))).permits[name]
    assert (permit.verdict, permit.account_id) == (Verdict.GRANTED, there.id)


@pytest.mark.parametrize(
    "fields", [{"email": "somebody@else.com"}, {"state": "SUSPENDED"}, {"name": "other"}], ids=lambda f: next(iter(f))
)
def test_an_account_that_only_resembles_ours_is_not_adopted(fields: dict[str, str]) -> None:
    accounts = wanting(1)
    name = accounts[0].metadata.name
    like = member(777, **{"name": name, "email": email_of(name, "redhat.com"), **fields})
    assert evaluated(accounts, census(10, more=(like,))).permits[name].account_id == ""


def test_an_account_that_another_resource_holds_is_not_adopted() -> None:
    accounts = wanting(1)
    name = accounts[0].metadata.name
    there = member(777, name=name, email=email_of(name, "redhat.com"))
    holder = ready_account("osd-creds-mgmt-holder", spec={"awsAccountID": there.id})
    assert evaluated([*accounts, holder], census(10, more=(there,))).permits[name].account_id == ""


def test_a_strangers_account_of_that_name_is_not_adopted() -> None:
    accounts = wanting(1)
    name = accounts[0].metadata.name
    there = member(777, name=name, email=email_of(name, "redhat.com"))
    done = attempt(name).model_copy(update={"account_id": there.id})
    of = census(10, done, more=(there,))
    assert adopted(accounts, of, (), "redhat.com", ()) == {there.id}
    assert adopted(accounts, of, (), "redhat.com", {there.id}) == set()
    assert adopted(accounts, of, {name}, "redhat.com", ()) == set(), "it has asked for the account itself"
    found = judge(accounts, (), CONFIG, of, {}, Budget(), "redhat.com", NOW, {there.id, "000000000999"})
    assert (found.permits[name].verdict, found.permits[name].account_id) == (Verdict.GRANTED, "")
    assert found.strangers == (there.id,)


class LookedThrough(list[Account]):
    """A list that counts how often it is iterated."""

    times = 0

    def __iter__(self) -> Iterator[Account]:
        self.times += 1
        return super().__iter__()


def test_accounts_are_looked_through_as_often_for_many_that_wait_as_for_one() -> None:
    one, many = LookedThrough(wanting(1)), LookedThrough(wanting(9))
    for accounts in (one, many):
        evaluated(accounts, census(10))
        adopted(accounts, census(10), (), "redhat.com", ())
    assert one.times == many.times


def test_a_request_under_way_under_that_name_is_adopted() -> None:
    accounts = wanting(1)
    name = accounts[0].metadata.name
    permit = evaluated(accounts, census(100, attempt(name, "IN_PROGRESS"))).permits[name]
    assert (permit.verdict, permit.request_id) == (Verdict.GRANTED, f"car-{name}")


def test_an_account_just_created_is_adopted_before_it_is_listed() -> None:
    accounts = wanting(1)
    name = accounts[0].metadata.name
    done = attempt(name).model_copy(update={"account_id": AWS_ID})
    assert evaluated(accounts, census(10, done)).permits[name].account_id == AWS_ID
    closed = MemberAccount(id=AWS_ID, name=name, email=email_of(name, "redhat.com"), state="SUSPENDED")
    assert evaluated(accounts, census(10, done, more=(closed,))).permits[name].account_id == ""


def test_of_two_accounts_of_one_name_only_the_oldest_adopts_and_creates() -> None:
    first = account(meta={"creationTimestamp": ago(minutes=9)})
    second = account(meta={"namespace": "other"})
    name = first.metadata.name
    there = member(777, name=name, email=email_of(name, "redhat.com"))
    for of in (census(), census(10, attempt(name, "IN_PROGRESS")), census(10, more=(there,))):
        found = evaluated([second, first], of)
        assert verdicts(found) == ["Granted"]
        assert found.behind["Account/other/" + name].verdict is Verdict.QUEUED
        assert first.key.path in found.behind["Account/other/" + name].message
    landed = account(meta={"creationTimestamp": ago(minutes=9)}, spec={"awsAccountID": there.id})
    after = evaluated([second, landed], census(10, more=(there,)))
    assert (verdicts(after), after.permits[name].account_id, after.behind) == (["Granted"], "", {})


PAUSED = {"annotations": {"perdure.dev/paused": "true"}}
NEVER_WANTS: list[dict[str, Any]] = [
    {"meta": PAUSED},
    {"meta": {"deletionTimestamp": ago(seconds=1), "finalizers": ["another's"]}},
    {"status": {"claimed": True}},
]


@pytest.mark.parametrize("idle", NEVER_WANTS, ids=["paused", "deleting", "blank but claimed"])
def test_an_older_account_of_the_same_name_that_wants_none_blocks_no_other(idle: dict[str, Any]) -> None:
    first = account(**{**idle, "meta": {**idle.get("meta", {}), "creationTimestamp": ago(minutes=9)}})
    second = account(meta={"namespace": "other", "creationTimestamp": ago(minutes=8)})
    third = account(meta={"namespace": "third", "creationTimestamp": ago(minutes=7)})
    name = first.metadata.name
    found = evaluated([third, second, first], census())
    assert (verdicts(found), list(found.behind)) == (["Granted"], [third.key.path])
    assert found.passed == {name: second.key.path}
    for of in (census(), census(10, attempt(name, "IN_PROGRESS")), census(10, more=(named_account(name),))):
        after = evaluated([third, second, first], of, granted=found.granted, passed=found.passed)
        assert (verdicts(after), list(after.behind)) == (["Granted"], [third.key.path]), "its permit is not taken back"
        assert after.passed == found.passed
    landed = second.model_copy(update={"spec": second.spec.model_copy(update={"aws_account_id": AWS_ID})})
    assert evaluated([landed, first], census(), passed=found.passed).passed == {}


def test_an_account_that_an_older_namesake_may_have_requested_is_not_given_away() -> None:
    first = account(meta={**PAUSED, "creationTimestamp": ago(minutes=9)})
    second = account(meta={"namespace": "other", "creationTimestamp": ago(minutes=8)})
    name = first.metadata.name
    permit = {name: NOW + timedelta(minutes=1)}
    for of, granted in (
        (census(), permit),
        (census(10, attempt(name, "IN_PROGRESS")), {}),
        (census(10, more=(named_account(name),)), {}),
    ):
        found = evaluated([second, first], of, granted=granted)
        assert (verdicts(found), list(found.behind)) == ([], [second.key.path])


def named_account(name: str) -> MemberAccount:
    return member(777, name=name, email=email_of(name, "redhat.com"))


WANTS = [
    ("new", account(), True),
    ("with an id", account(spec={"awsAccountID": AWS_ID}), False),
    ("claimed and blank", account(status={"claimed": True}), False),
    ("byoc", account(spec={"byoc": True}), False),
    ("sts", account(spec={"manualSTSMode": True}), False),
    ("failed", account(status={"state": "Failed"}), False),
    ("deleting", account(meta={"deletionTimestamp": ago(seconds=1)}), False),
    ("paused", account(meta={"annotations": {"aws.managed.openshift.com/pause-reconciliation": "true"}}), False),
    ("paused by ours", account(meta={"annotations": {"perdure.dev/paused": "true"}}), False),
]


@pytest.mark.parametrize(("of", "wants"), [(of, w) for _, of, w in WANTS], ids=[what for what, _, _ in WANTS])
def test_accounts_that_want_an_aws_account(of: Account, wants: bool) -> None:
    assert wants_account(of) is wants


# --- support cases ---


def waiting(case: str, since: str, **status: Any) -> Account:
    conditions = [condition("PendingVerification", entered=since)]
    return ready_account(
        f"osd-creds-mgmt-{case}",
        status={"state": "PendingVerification", "supportCaseID": case, "conditions": conditions, **status},
    )


def test_cases_are_young_for_an_hour_from_when_the_account_entered_the_state() -> None:
    young, old = open_cases(
        [
            waiting("young2", ago(minutes=59, seconds=59)),
            waiting("oldold", ago(minutes=60)),
            waiting("nocond", ago(minutes=1), conditions=[]),
            waiting("nocase", ago(minutes=1), supportCaseID=""),
            waiting("ready2", ago(minutes=1), state="Ready"),
        ],
        NOW,
    )
    assert (set(young), set(old)) == ({"young2"}, {"oldold", "nocond"})


CASE = {"case-1": Key(kind="Account", namespace="ns", name="one", uid="1")}


def test_looks_at_a_new_case_come_soon_and_their_pauses_grow_to_the_interval() -> None:
    known = OrganizationMemory(young_cases=CASE, young_cases_at=NOW - timedelta(minutes=5), youngest_case_at=NOW)
    looks: list[float] = []
    moment = NOW
    while len(looks) < 11:
        due, _ = next_case_looks(known, POLL, moment)
        assert due is not None
        assert next_case_looks(known, POLL, due) == (due, None)  # waiting does not postpone it
        moment = due
        looks.append((moment - NOW).total_seconds())
        known = known.model_copy(update={"young_cases_at": moment})
    pauses = [round(after - before) for before, after in pairwise(looks)]
    assert looks[0] == 5
    assert pauses == [5, 5, 6, 8, 12, 16, 23, 32, 45, 60]


def test_a_case_opened_while_others_are_old_is_observed_soon() -> None:
    known = OrganizationMemory(young_cases=CASE, young_cases_at=NOW - timedelta(seconds=30), youngest_case_at=NOW)
    assert next_case_looks(known, POLL, NOW) == (NOW + timedelta(seconds=5), None)


LOOKED = OrganizationMemory(young_cases_at=NOW, old_cases_at=NOW)


@pytest.mark.parametrize(
    ("known", "young", "old", "poll", "after"),
    [
        (OrganizationMemory(), True, False, POLL, timedelta(0)),
        (OrganizationMemory(), False, True, POLL, timedelta(0)),
        (LOOKED, False, False, POLL, None),
        (LOOKED, True, False, POLL, timedelta(minutes=1)),
        (LOOKED, False, True, POLL, timedelta(minutes=10)),
        (LOOKED, True, True, POLL, timedelta(minutes=1)),
        (LOOKED, True, True, timedelta(seconds=5), timedelta(seconds=5)),
        (LOOKED, False, True, timedelta(seconds=5), timedelta(minutes=10)),
        (LOOKED, True, True, timedelta(minutes=30), timedelta(minutes=30)),
    ],
)
def test_one_look_per_interval_for_young_cases_and_every_ten_minutes_for_old_ones(
    known: OrganizationMemory, young: bool, old: bool, poll: timedelta, after: timedelta | None
) -> None:
    known = known.model_copy(update={"young_cases": CASE if young else {}, "old_cases": CASE if old else {}})
    due = earliest(next_case_looks(known, poll, NOW))
    assert due == (NOW + after if after is not None else None)
