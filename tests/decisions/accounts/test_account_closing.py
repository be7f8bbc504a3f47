"""Closing a released account instead of freeing it: the flag, the dry run, AWS's limit, and what it must never do."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from account_objects import AWS_ID, NAME, NOW, activities, claim, claim_world, config, fold, ready_account, refusal

from domain.accounts.account_closing import back_off
from domain.accounts.actions.account_closing import CloseAccount, Closing, NoteClosing
from domain.accounts.actions.handover import Release, ReleaseAccount
from domain.accounts.claim_lifecycle import decide
from domain.accounts.config import OperatorConfig
from domain.accounts.constants import CLOSE_BACKOFF_SECONDS, CLOSE_LIMITED_UNTIL, CLOSING_FOR
from domain.accounts.observed import ClaimWorld
from domain.accounts.resources import Account
from domain.decision import Decision, Outcome
from domain.refusal import OBSERVE_MODE, ErrorType
from domain.resource import parse_timestamp, timestamp
from domain.writes import Written

CLEAN = {"keys_rotated": True, "cleaned": {"us-east-1": "", "global": ""}}
ON = {"feature.close_on_release": "true", "close_account.dry_run": "false"}


def closes(**data: str) -> OperatorConfig:
    return config(**{**ON, **data})


BEGUN = {CLOSING_FOR: "uid-claim"}


def held(**annotations: str) -> Account:
    """A clean account of a claim that is being released; its closing has begun, unless something else is noted."""
    return ready_account(
        meta={"annotations": annotations or BEGUN},
        spec={"claimLink": "claim", "claimLinkNamespace": "tenant"},
        status={"claimed": True},
    )


def released(account: Account | None = None, known: dict[str, Any] | None = None, **fields: Any) -> ClaimWorld:
    deleted = claim(meta={"deletionTimestamp": timestamp(NOW)}, spec={"accountLink": NAME})
    fields.setdefault("config", closes())
    return claim_world(deleted, account=account or held(), known={**CLEAN, **(known or {})}, **fields)


def release_of(decision: Decision) -> ReleaseAccount:
    (action,) = decision.actions
    assert isinstance(action, ReleaseAccount)
    return action


@pytest.mark.parametrize(
    "settings",
    [config(), config(**{"close_account.dry_run": "false"}), closes(fedramp="true")],
    ids=["no flag", "only no dry run", "GovCloud"],
)
def test_without_the_feature_an_account_is_freed(settings: OperatorConfig) -> None:
    decision = decide(released(held(other=""), config=settings), NOW)
    assert release_of(decision).how is Release.FREE
    assert "close" not in decision.why


@pytest.mark.parametrize("dry", [None, "true", "perhaps"])
def test_a_dry_run_which_is_the_default_says_so_and_frees(dry: str | None) -> None:
    data = {"feature.close_on_release": "true", **({"close_account.dry_run": dry} if dry else {})}
    decision = decide(released(held(other=""), config=config(**data)), NOW)
    assert release_of(decision).how is Release.FREE
    assert "dry_run" in decision.why


def test_nothing_is_closed_that_is_not_clean() -> None:
    decision = decide(released(held(other=""), known={"cleaned": {}}), NOW)
    assert activities(decision) == ["aws.clean_region", "aws.clean_global"]


def test_the_closing_is_noted_for_this_claim_before_aws_is_asked() -> None:
    before = released(held(**{CLOSING_FOR: "uid-of-a-claim-before"}))
    (note,) = decide(before, NOW).actions
    assert isinstance(note, NoteClosing)
    assert note.patch == {"metadata": {"annotations": BEGUN}}
    assert activities(decide(fold(before, note, Written(resource_version="8")), NOW)) == ["aws.close_account"]


@pytest.mark.parametrize("settings", [closes(), config(), closes(**{"close_account.dry_run": "true"})])
def test_a_lifecycle_without_memory_continues_the_close_of_an_uncleanable_account(settings: OperatorConfig) -> None:
    forgetful = released(known={"keys_rotated": False, "cleaned": {}}, config=settings)
    assert activities(decide(forgetful, NOW)) == ["aws.close_account"]


def test_a_closed_account_is_deleted_and_then_the_claim_goes() -> None:
    before = released()
    (close,) = decide(before, NOW).actions
    assert close == CloseAccount(account_id=AWS_ID)
    after = fold(before, close, Closing())
    gone = release_of(decide(after, NOW))
    assert gone.how is Release.CLOSED
    assert activities(decide(fold(after, gone, None), NOW)) == ["kube.patch"], "the finalizer is dropped"


def test_a_closed_account_is_never_reused_even_if_the_feature_is_switched_off() -> None:
    assert release_of(decide(released(known={"closed": AWS_ID}, config=config()), NOW)).how is Release.CLOSED


def test_a_closing_that_aws_limits_is_put_off_on_the_account_and_the_claim_waits() -> None:
    before = released()
    after = fold(before, CloseAccount(account_id=AWS_ID), Closing(limited="CLOSE_ACCOUNT_QUOTA_EXCEEDED"))
    (note,) = decide(after, NOW).actions
    assert isinstance(note, NoteClosing)
    assert note.key.kind == "Account"
    assert note.patch == {
        "metadata": {
            "annotations": {
                CLOSE_LIMITED_UNTIL: timestamp(NOW + timedelta(hours=1)),
                CLOSE_BACKOFF_SECONDS: "3600",
                CLOSING_FOR: None,
            }
        }
    }
    noted = fold(after, note, Written(resource_version="8"))
    waits = decide(noted, NOW)
    assert (waits.outcome, waits.actions, waits.deadline) == (Outcome.WAITING, (), NOW + timedelta(hours=1))
    assert activities(decide(noted, NOW + timedelta(hours=1))) == ["kube.patch"], "it begins again"
    assert release_of(decide(noted.model_copy(update={"config": config()}), NOW)).how is Release.FREE, "or is given up"


@pytest.mark.parametrize(
    ("before", "hours"), [("", 1), ("0", 1), ("3600", 2), ("7200", 4), ("57600", 24), ("86400", 24), ("soon", 1)]
)
def test_each_limit_doubles_the_delay_up_to_a_day(before: str, hours: int) -> None:
    assert back_off(held(**{CLOSE_BACKOFF_SECONDS: before})) == timedelta(hours=hours)


def test_the_delay_outlives_the_lifecycles_memory() -> None:
    until = NOW + timedelta(hours=3)
    decision = decide(released(held(**{CLOSE_LIMITED_UNTIL: timestamp(until)})), NOW)
    assert (decision.actions, decision.deadline) == ((), parse_timestamp(timestamp(until)))


def test_a_delay_near_the_end_of_the_calendar_is_looked_at_again_every_day() -> None:
    decision = decide(released(held(**{CLOSE_LIMITED_UNTIL: "9999-12-31T23:59:59-10:00"})), NOW)
    assert (decision.actions, decision.deadline) == ((), NOW + timedelta(days=1))


def test_a_garbled_delay_is_none() -> None:
    garbled = held(**{CLOSE_LIMITED_UNTIL: "later", **BEGUN})
    assert activities(decide(released(garbled), NOW)) == ["aws.close_account"]


@pytest.mark.parametrize("type_", [ErrorType.DENIED, ErrorType.INVALID, ErrorType.ABSENT])
def test_an_account_that_aws_will_not_close_is_released_with_a_reason(type_: ErrorType) -> None:
    refused = {CloseAccount.activity: refusal(type_, "not this one")}
    decision = decide(released().model_copy(update={"refusals": refused}), NOW)
    assert release_of(decision).how is Release.FREE
    assert "not this one" in decision.why


def test_a_customers_account_is_never_closed() -> None:
    account = held()
    own = account.model_copy(update={"spec": account.spec.model_copy(update={"byoc": True})})
    assert "aws.close_account" not in activities(decide(released(own), NOW))


def test_a_protected_account_is_never_closed() -> None:
    assert decide(released(protected=(AWS_ID,)), NOW).actions == ()


def test_an_account_that_names_another_claim_is_not_closed() -> None:
    account = held()
    other = account.model_copy(update={"spec": account.spec.model_copy(update={"claim_link": "other"})})
    assert activities(decide(released(other), NOW)) == ["kube.patch"]


def test_a_closing_that_observe_mode_stopped_is_continued() -> None:
    refused = {CloseAccount.activity: refusal(ErrorType.DENIED, "not sent", code=OBSERVE_MODE)}
    assert activities(decide(released().model_copy(update={"refusals": refused}), NOW)) == ["aws.close_account"]
