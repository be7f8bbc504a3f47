"""CreateAccount and what follows: whatever answer is lost, there is one account."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from aws_lab import Lab, create, email

from activities.aws import account_moves, organization
from domain.accounts import ACCOUNT
from domain.accounts.actions.account_creation import AwaitAccount, CreatedAccount, TagAccount
from engine.errors import Conflict, Denied, Invalid, Pending, Throttled, Unavailable

pytestmark = pytest.mark.integration


def wait_for(name: str, request_id: str) -> AwaitAccount:
    return AwaitAccount(name=name, email=email(name), request_id=request_id)


def awaited(lab: Lab, action: AwaitAccount) -> CreatedAccount:
    """The answer of the second attempt; the first one does not ask."""
    return lab.run(lab.activities.await_account, action, attempt=2)


def accounts_named(lab: Lab, name: str) -> list[str]:
    return [account.id for account in lab.emulator.world().accounts if account.name == name]


def test_a_new_account_is_asked_for_without_a_search(lab: Lab) -> None:
    account_id, name = lab.account()
    assert accounts_named(lab, name) == [account_id]
    assert lab.calls("organizations", "ListAccounts") == lab.calls("organizations", "ListCreateAccountStatus") == 0


def test_a_lost_answer_is_found_within_the_attempt(lab: Lab) -> None:
    name = lab.name()
    lab.emulator.fault("organizations", "CreateAccount", kind="after", count=1)
    found = lab.run(lab.activities.create_account, create(name))
    awaited(lab, wait_for(name, found.request_id))
    assert len(accounts_named(lab, name)) == 1
    assert lab.calls("organizations", "CreateAccount") == 1


def test_a_request_by_a_killed_process_is_found_by_name_and_not_repeated(lab: Lab) -> None:
    name = lab.name()
    lab.emulator.fault("organizations", "CreateAccount", kind="after", count=1)
    blind = lab.emulator.fault("organizations", "ListCreateAccountStatus", kind="before")
    with pytest.raises(Unavailable):
        lab.run(lab.activities.create_account, create(name))
    lab.emulator.clear(blind.id)
    found = lab.run(lab.activities.create_account, create(name), attempt=2)
    awaited(lab, wait_for(name, found.request_id))
    assert len(accounts_named(lab, name)) == 1
    assert lab.calls("organizations", "CreateAccount") == 1


def test_an_account_of_an_earlier_life_is_adopted_when_asked_to_search(lab: Lab) -> None:
    account_id, name = lab.account()
    found = lab.run(lab.activities.create_account, create(name, search=True))
    assert found.created_account_id == account_id
    assert lab.calls("organizations", "CreateAccount") == 1


def test_a_second_request_for_the_same_address_leads_to_the_first_account(lab: Lab) -> None:
    account_id, name = lab.account()
    blind = lab.run(lab.activities.create_account, create(name))
    found = awaited(lab, wait_for(name, blind.request_id))
    assert found.created_account_id == account_id
    assert accounts_named(lab, name) == [account_id]


def test_an_account_of_another_installation_is_not_adopted(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.run(lab.activities.tag_account, TagAccount(account_id=account_id, tags={"owner": "another"}))
    found = lab.run(lab.activities.create_account, create(name, search=True))
    assert (found.created_account_id, lab.calls("organizations", "CreateAccount")) == ("", 2)
    with pytest.raises(Invalid) as refused:
        awaited(lab, wait_for(name, found.request_id))
    assert refused.value.code == "EMAIL_ALREADY_EXISTS"


def test_an_account_that_is_recorded_or_closed_is_not_adopted(lab: Lab) -> None:
    account_id, name = lab.account()
    blind = lab.run(lab.activities.create_account, create(name))
    holder = lab.owner(lab.name())
    lab.kube.patch(ACCOUNT, holder.namespace, holder.name, {"spec": {"awsAccountID": account_id}})
    with pytest.raises(Invalid):
        awaited(lab, wait_for(name, blind.request_id))
    lab.kube.patch(ACCOUNT, holder.namespace, holder.name, {"spec": {"awsAccountID": ""}})
    assert awaited(lab, wait_for(name, blind.request_id)).created_account_id == account_id
    lab.sessions.payer().organizations().close_account(AccountId=account_id)
    assert lab.run(lab.activities.create_account, create(name, search=True)).created_account_id == ""
    with pytest.raises(Invalid):
        awaited(lab, wait_for(name, blind.request_id))


def test_an_address_of_a_stranger_is_refused(lab: Lab) -> None:
    _, name = lab.account()
    other = create(lab.name()).model_copy(update={"email": email(name)})
    request = lab.run(lab.activities.create_account, other)
    action = AwaitAccount(name=other.name, email=other.email, request_id=request.request_id)
    with pytest.raises(Invalid) as refused:
        awaited(lab, action)
    assert refused.value.code == "EMAIL_ALREADY_EXISTS"


def test_nothing_is_asked_after_the_permit(lab: Lab) -> None:
    with pytest.raises(Invalid) as refused:
        lab.run(lab.activities.create_account, create(lab.name(), until=datetime.now(UTC) - timedelta(seconds=1)))
    assert refused.value.code == "PermitExpired"
    assert lab.calls("organizations", "CreateAccount") == 0


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("TooManyRequestsException", Throttled),
        ("ConcurrentModificationException", Throttled),
        ("ServiceException", Unavailable),
        ("FinalizingOrganizationException", Unavailable),
        ("ConstraintViolationException", Invalid),
        ("AccessDeniedException", Denied),
    ],
)
def test_each_refusal_has_its_kind(lab: Lab, code: str, error: type[Exception]) -> None:
    lab.emulator.fault("organizations", "CreateAccount", kind="error", code=code, count=1)
    with pytest.raises(error) as refused:
        lab.run(lab.activities.create_account, create(lab.name()))
    assert getattr(refused.value, "code", "") == code
    assert "request" in str(refused.value)


def test_a_request_under_way_is_observed_again_later_each_time(lab: Lab) -> None:
    lab.emulator.config(create_account_seconds=600)
    name = lab.name()
    request = lab.run(lab.activities.create_account, create(name))
    delays = []
    for attempt in (1, 4, 8, 20):
        with pytest.raises(Pending) as pending:
            lab.run(lab.activities.await_account, wait_for(name, request.request_id), attempt=attempt)
        assert pending.value.delay is not None
        delays.append(pending.value.delay.total_seconds())
    assert delays == sorted(delays) or abs(delays[2] - delays[3]) < 3
    assert 5 < delays[0] < 7
    assert 12 < delays[3] < 18


def test_a_request_is_not_observed_at_once(lab: Lab) -> None:
    name = lab.name()
    request = lab.run(lab.activities.create_account, create(name))
    with pytest.raises(Pending):
        lab.run(lab.activities.await_account, wait_for(name, request.request_id))
    assert lab.calls("organizations", "DescribeCreateAccountStatus") == 0
    assert awaited(lab, wait_for(name, request.request_id)).created_account_id


@pytest.mark.parametrize(
    ("reason", "error"),
    [
        ("ACCOUNT_LIMIT_EXCEEDED", Invalid),
        ("INVALID_EMAIL", Invalid),
        ("INTERNAL_FAILURE", Conflict),
        ("CONCURRENT_ACCOUNT_MODIFICATION", Conflict),
    ],
)
def test_a_failed_request_says_why(lab: Lab, reason: str, error: type[Exception]) -> None:
    lab.emulator.fault("organizations", "CreateAccount", kind="async-failure", code=reason, count=1)
    name = lab.name()
    request = lab.run(lab.activities.create_account, create(name))
    with pytest.raises(error) as failed:
        awaited(lab, wait_for(name, request.request_id))
    assert getattr(failed.value, "code", "") == reason


def test_tags_are_put_on_the_account(lab: Lab) -> None:
    account_id, _ = lab.account()
    lab.run(lab.activities.tag_account, TagAccount(account_id=account_id, tags={"owner": "shard"}))
    assert lab.emulator.world().account(account_id).tags["owner"] == "shard"


def test_a_tag_that_cannot_be_put_stops_nothing(lab: Lab) -> None:
    account_id, _ = lab.account()
    lab.emulator.fault("organizations", "TagResource", kind="denied")
    lab.run(lab.activities.tag_account, TagAccount(account_id=account_id, tags={"owner": "shard"}))
    lab.emulator.fault("organizations", "TagResource", kind="throttle")
    lab.run(lab.activities.tag_account, TagAccount(account_id=account_id, tags={"owner": "shard"}), attempt=5)


def test_the_census_knows_accounts_and_requests(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.emulator.fault("organizations", "CreateAccount", kind="async-failure", code="INVALID_ADDRESS", count=1)
    failed = lab.name()
    lab.run(lab.activities.create_account, create(failed))
    census = organization.census(lab.sessions, datetime(2020, 1, 1, tzinfo=UTC))
    assert {account.name: account.id for account in census.accounts}[name] == account_id
    assert census.active == len([a for a in lab.emulator.world().accounts if a.status == "ACTIVE"])
    states = {item.name: item.state for item in census.attempts}
    assert (states[name], states[failed]) == ("SUCCEEDED", "FAILED")
    assert organization.count_active(lab.sessions) == census.active


def test_an_old_census_leaves_old_requests_out(lab: Lab) -> None:
    _, name = lab.account()
    census = organization.census(lab.sessions, datetime.now(UTC) + timedelta(days=365))
    assert name not in {item.name for item in census.attempts}


def test_units_are_made_once_and_found_afterwards(lab: Lab) -> None:
    root = lab.emulator.world().root
    names = [lab.name() for _ in range(6)]
    made = organization.ensure_organizational_units(lab.sessions, root, names)
    assert (set(made.ids), made.refused) == (set(names), {})
    assert organization.ensure_organizational_units(lab.sessions, root, names) == made


def test_units_that_meet_another_change_are_made_one_after_the_other(lab: Lab) -> None:
    root = lab.emulator.world().root
    names = [lab.name() for _ in range(6)]
    lab.emulator.fault("organizations", "CreateOrganizationalUnit", kind="throttle", count=4)
    made = organization.ensure_organizational_units(lab.sessions, root, names)
    assert (set(made.ids), len(set(made.ids.values()))) == (set(names), 6)


def test_a_unit_whose_answer_was_lost_is_found_by_the_next_attempt(lab: Lab) -> None:
    root = lab.emulator.world().root
    names = [lab.name(), lab.name()]
    lab.emulator.fault("organizations", "CreateOrganizationalUnit", kind="after", count=1)
    with pytest.raises(Unavailable):
        organization.ensure_organizational_units(lab.sessions, root, names)
    made = organization.ensure_organizational_units(lab.sessions, root, names)
    assert set(made.ids) == set(names)


def test_an_account_is_moved_once_and_moving_it_again_is_fine(lab: Lab) -> None:
    account_id, _ = lab.account()
    root = lab.emulator.world().root
    base = organization.ensure_organizational_units(lab.sessions, root, [lab.name()]).ids.popitem()[1]
    first, second = organization.ensure_organizational_units(lab.sessions, base, ["a", "b"]).ids.values()
    account_moves.move_account(lab.sessions, account_id, root, base, first)
    account_moves.move_account(lab.sessions, account_id, root, base, first)
    assert lab.emulator.world().account(account_id).parent == first
    account_moves.move_account(lab.sessions, account_id, root, base, second)
    assert lab.emulator.world().account(account_id).parent == second


def test_an_account_that_a_person_moved_is_not_moved_back(lab: Lab) -> None:
    account_id, _ = lab.account()
    root = lab.emulator.world().root
    names = [lab.name(), lab.name()]
    base, foreign = organization.ensure_organizational_units(lab.sessions, root, names).ids.values()
    unit = organization.ensure_organizational_units(lab.sessions, base, ["a"]).ids["a"]
    account_moves.move_account(lab.sessions, account_id, root, root, foreign)
    with pytest.raises(Denied):
        account_moves.move_account(lab.sessions, account_id, root, base, unit)
    assert lab.emulator.world().account(account_id).parent == foreign
