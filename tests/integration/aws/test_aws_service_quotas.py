"""Service quotas: one list per region, one request per quota, each end of a request, and what others have open."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from aws_lab import REGION, Lab, region_init

from activities.aws.session import Sessions
from domain.accounts.actions.service_quotas import RaiseQuotas
from domain.accounts.resources import ServiceQuota
from engine.errors import Denied, Pending, Throttled, Unavailable

pytestmark = pytest.mark.integration

RULES, VCPUS, ADDRESSES, STORAGE, ROLES = "L-0EA8095F", "L-1216C47A", "L-0263D0A3", "L-7A658B76", "L-FE177D64"
DAY = 86400


def raising(account_id: str, region: str = REGION, since: datetime | None = None, **codes: str) -> RaiseQuotas:
    """The action for quotas of 200, given with their present statuses."""
    quotas = {code.replace("_", "-"): ServiceQuota(value=200, status=status) for code, status in codes.items()}
    return RaiseQuotas(account_id=account_id, region=region, quotas=quotas, since=since)


def raised(lab: Lab, account_id: str, **codes: str) -> dict[str, str]:
    return lab.run(lab.activities.raise_quotas, raising(account_id, **codes)).statuses


def requests(lab: Lab, account_id: str) -> list[tuple[str, str]]:
    return [(r.region, r.code) for r in lab.emulator.world().quota_requests if r.account == account_id]


def test_a_quota_that_is_too_low_is_asked_for_once_whatever_is_lost(lab: Lab) -> None:
    account_id, _ = lab.account()
    lab.emulator.config(quota_pending_seconds=DAY)
    lab.emulator.fault("servicequotas", "RequestServiceQuotaIncrease", kind="after", count=1)
    with pytest.raises(Unavailable):
        raised(lab, account_id, L_0EA8095F="TODO", L_1216C47A="TODO")
    lab.emulator.reset_ledger()
    assert raised(lab, account_id, L_0EA8095F="TODO", L_1216C47A="TODO") == {RULES: "IN_PROGRESS", VCPUS: "IN_PROGRESS"}
    assert sorted(requests(lab, account_id)) == [(REGION, RULES), (REGION, VCPUS)]
    assert lab.calls("servicequotas", "RequestServiceQuotaIncrease", account_id) == 1


def test_a_look_at_open_requests_is_one_call_however_many_they_are(lab: Lab) -> None:
    account_id, _ = lab.account()
    lab.emulator.config(quota_pending_seconds=DAY, quota_case_seconds=DAY)
    raised(lab, account_id, L_0EA8095F="TODO", L_1216C47A="TODO", L_0263D0A3="TODO")
    lab.emulator.clock(advance_seconds=DAY + 1)
    lab.emulator.reset_ledger()
    opened = raising(account_id, L_0EA8095F="IN_PROGRESS", L_1216C47A="IN_PROGRESS", L_0263D0A3="IN_PROGRESS")
    with pytest.raises(Pending) as pending:
        lab.run(lab.activities.raise_quotas, opened, attempt=3)
    assert pending.value.delay == 3 * lab.settings.accounts_poll
    assert lab.emulator.ledger().by_action() == {"servicequotas:ListRequestedServiceQuotaChangeHistory": 1}


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        ("APPROVED", "COMPLETED"),
        ("CASE_CLOSED", "COMPLETED"),
        ("DENIED", "DENIED"),
        ("NOT_APPROVED", "DENIED"),
        ("INVALID_REQUEST", "MANUAL_ACTION"),
    ],
)
def test_every_end_of_a_request_is_an_end(lab: Lab, outcome: str, status: str) -> None:
    account_id, _ = lab.account()
    lab.emulator.config(quota_outcome=outcome)
    raised(lab, account_id, L_0EA8095F="TODO")
    for _ in range(2):
        assert raised(lab, account_id, L_0EA8095F="IN_PROGRESS") == {RULES: status}
    assert requests(lab, account_id) == [(REGION, RULES)], "none is made again"


def test_a_refusal_from_before_a_retry_is_asked_again(lab: Lab) -> None:
    account_id, _ = lab.account()
    lab.emulator.config(quota_outcome="DENIED")
    raised(lab, account_id, L_0EA8095F="TODO")
    lab.emulator.config(quota_outcome="APPROVED")
    later = datetime.now(UTC) + timedelta(seconds=5)
    requested = lab.run(lab.activities.raise_quotas, raising(account_id, since=later, L_0EA8095F="TODO"))
    assert requested.statuses == {RULES: "IN_PROGRESS"}
    assert raised(lab, account_id, L_0EA8095F="IN_PROGRESS") == {RULES: "COMPLETED"}


def test_a_sufficient_quota_needs_no_request_and_an_unknown_one_needs_a_person(lab: Lab) -> None:
    account_id, _ = lab.account()
    high = RaiseQuotas(account_id=account_id, region=REGION, quotas={RULES: ServiceQuota(value=60, status="TODO")})
    assert lab.run(lab.activities.raise_quotas, high).statuses == {RULES: "COMPLETED"}
    assert raised(lab, account_id, region="eu-west-1", L_FE177D64="TODO") == {ROLES: "MANUAL_ACTION"}
    assert requests(lab, account_id) == []


def test_account_wide_quotas_are_asked_for_where_aws_keeps_them(lab: Lab) -> None:
    account_id, _ = lab.account()
    action = RaiseQuotas(account_id=account_id, region="", quotas={ROLES: ServiceQuota(value=5000, status="TODO")})
    assert lab.run(lab.activities.raise_quotas, action).statuses == {ROLES: "IN_PROGRESS"}
    assert requests(lab, account_id) == [("us-east-1", ROLES)]


def test_an_open_request_of_another_value_is_awaited_before_the_wanted_one(lab: Lab) -> None:
    account_id, _ = lab.account()
    lab.emulator.config(quota_pending_seconds=DAY)
    other = raising(account_id, L_0EA8095F="TODO")
    quotas = {RULES: ServiceQuota(value=100, status="TODO")}
    lab.run(lab.activities.raise_quotas, other.model_copy(update={"quotas": quotas}))
    assert raised(lab, account_id, L_0EA8095F="TODO") == {RULES: "IN_PROGRESS"}
    assert len(requests(lab, account_id)) == 1
    lab.emulator.clock(advance_seconds=DAY + 1)
    with pytest.raises(Pending):
        raised(lab, account_id, L_0EA8095F="IN_PROGRESS")
    assert len(requests(lab, account_id)) == 2


def test_a_request_without_room_at_aws_stays_to_be_done(lab: Lab) -> None:
    account_id, _ = lab.account()
    lab.emulator.config(quota_pending_seconds=DAY, quota_requests_open=2)
    requested = raised(lab, account_id, L_0EA8095F="TODO", L_1216C47A="TODO", L_0263D0A3="TODO")
    assert sorted(requested.values()) == ["IN_PROGRESS", "IN_PROGRESS", "TODO"]
    with pytest.raises(Pending):
        raised(lab, account_id, **{code.replace("-", "_"): status for code, status in requested.items()})


def test_a_denial_is_reported_and_throttling_is_retried(lab: Lab) -> None:
    account_id, _ = lab.account()
    lab.emulator.fault("servicequotas", "GetServiceQuota", kind="denied", count=1)
    with pytest.raises(Denied):
        raised(lab, account_id, L_0EA8095F="TODO")
    lab.emulator.fault("servicequotas", "GetServiceQuota", kind="throttle", count=1)
    with pytest.raises(Throttled):
        raised(lab, account_id, L_0EA8095F="TODO")
    assert raised(lab, account_id, L_0EA8095F="TODO") == {RULES: "IN_PROGRESS"}


def test_nothing_is_asked_for_in_a_protected_account(lab: Lab) -> None:
    payer = Sessions(lab.kube, lab.settings).payer().identity().account_id
    with pytest.raises(Denied):
        raised(lab, payer, L_0EA8095F="TODO")


@pytest.mark.parametrize(("wanted", "requested"), [(0, 0), (1, 0), (200, 1)])
def test_vcpus_are_asked_for_with_a_regions_initialisation_which_waits_for_nothing(
    lab: Lab, wanted: int, requested: int
) -> None:
    account_id, name = lab.account()
    lab.emulator.config(quota_pending_seconds=DAY)
    action = region_init(account_id, name).model_copy(update={"vcpu_quota": wanted})
    for _ in range(2):
        assert lab.run(lab.activities.initialize_region, action).ok
    assert requests(lab, account_id) == [(REGION, VCPUS)] * requested


def test_an_observation_says_whether_the_vcpus_of_a_region_are_still_requested(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.emulator.config(quota_pending_seconds=DAY)
    action = region_init(account_id, name).model_copy(update={"vcpu_quota": 200})
    for _ in range(2):
        assert lab.run(lab.activities.initialize_region, action).vcpus_asked
    look = raising(account_id, L_0EA8095F="TODO")
    assert lab.run(lab.activities.raise_quotas, look).vcpus_asked
    alone = raising(account_id).model_copy(update={"vcpus_asked": True})
    with pytest.raises(Pending):
        lab.run(lab.activities.raise_quotas, alone)
    lab.emulator.clock(advance_seconds=DAY + 1)
    assert not lab.run(lab.activities.raise_quotas, alone).vcpus_asked
    assert not lab.run(lab.activities.initialize_region, action).vcpus_asked


def test_vcpus_that_cannot_be_asked_for_stop_no_initialisation(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.emulator.fault("servicequotas", "GetServiceQuota", kind="denied")
    action = region_init(account_id, name).model_copy(update={"vcpu_quota": 200})
    assert lab.run(lab.activities.initialize_region, action).ok
