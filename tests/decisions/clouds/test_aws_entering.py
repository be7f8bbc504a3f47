"""An admin user's account that cannot be entered, told apart from one in which IAM refuses."""

from __future__ import annotations

import base64
import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from account_objects import AWS_ID, account
from temporalio.testing import ActivityEnvironment

from activities.aws.iam_identities import ensure_admin_user
from activities.aws.session import Identity, Payer, Services, Sessions
from domain.accounts.actions.iam_identities import EnsureAdminUser
from domain.accounts.constants import NOT_ENTERED, PROTECTED
from domain.identity import Kind
from engine.errors import Absent, ApiError, Denied, Invalid
from engine.kube import SECRET, BlockingKube
from engine.settings import Settings

PAYER = Identity(account_id="999999999999", arn="arn:aws:iam::999999999999:user/payer")
KEY = {"aws_access_key_id": "QUtJQQ==", "aws_secret_access_key": "c2VjcmV0"}


class Kube:
    """An API server with the ConfigMap and the payer's Secret, or an error instead of the Secret."""

    def __init__(self, secret: ApiError | None = None, **keys: str) -> None:
        self._refusal = secret
        self._keys = {**KEY, **{name: base64.b64encode(value.encode()).decode() for name, value in keys.items()}}

    def get(self, kind: Kind, namespace: str, name: str) -> dict[str, Any]:
        if kind is SECRET and self._refusal:
            raise self._refusal
        return {"data": self._keys if kind is SECRET else {}}


def refused(kube: Kube, account_id: str = AWS_ID) -> ApiError:
    """The error of an attempt that began ten minutes ago, so that nothing counts as new."""
    action = EnsureAdminUser(account_id=account_id, owner=account().key, iam_user_id="bcd456", secret="key", tags={})
    environment, now = ActivityEnvironment(), datetime.now(UTC)
    since = now - timedelta(minutes=10)
    environment.info = dataclasses.replace(environment.info, scheduled_time=since, started_time=now)
    sessions = Sessions(cast("BlockingKube", kube), Settings())
    with pytest.raises(ApiError) as error:
        environment.run(ensure_admin_user, sessions, action)
    return error.value


def answering(monkeypatch: pytest.MonkeyPatch, caller: type, call: str, answer: object) -> None:
    def answered(*_: object, **__: object) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(caller, call, answered)


@pytest.mark.parametrize("secret", [Absent("not found"), Denied("forbidden", code="Forbidden")])
def test_a_payers_key_that_cannot_be_read_is_no_answer_of_iam(secret: ApiError) -> None:
    assert refused(Kube(secret)).code == NOT_ENTERED


@pytest.mark.parametrize("name", ["aws_access_key_id", "aws_session_token"])
@pytest.mark.parametrize("value", ["AKIA\nAKIB", "AKIA鍵", "A\0"])
def test_a_key_that_no_header_can_hold_is_refused_by_name(name: str, value: str) -> None:
    error = refused(Kube(**{name: value}))
    assert type(error) is Denied
    assert f"aws-account-operator-credentials: {name} has characters" in error.message


@pytest.mark.parametrize("code", ["InvalidClientTokenId", "SignatureDoesNotMatch", "ExpiredToken"])
def test_a_payers_key_that_aws_refuses_is_no_answer_of_iam(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    answering(monkeypatch, Services, "ask_identity", Denied(f"{code}: no", code=code))
    error = refused(Kube())
    assert (error.code, error.message) == (NOT_ENTERED, f"{code}: no")


@pytest.mark.parametrize("code", ["AccessDenied", "ExpiredToken", "InvalidClientTokenId"])
def test_a_role_that_cannot_be_assumed_is_no_answer_of_iam(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    answering(monkeypatch, Services, "ask_identity", PAYER)
    answering(monkeypatch, Payer, "assume_role", Denied("no", code=code))
    error = refused(Kube())
    assert (type(error), error.code) == (Denied, NOT_ENTERED)


@pytest.mark.parametrize(("account_id", "code"), [(PAYER.account_id, PROTECTED), ("12", "InvalidAccountId")])
def test_an_account_that_is_never_entered_keeps_its_own_code(
    monkeypatch: pytest.MonkeyPatch, account_id: str, code: str
) -> None:
    answering(monkeypatch, Services, "ask_identity", PAYER)
    assert refused(Kube(), account_id).code == code


@pytest.mark.parametrize("error", [Denied("no", code="AccessDenied"), Invalid("bad", code="InvalidInput")])
def test_an_answer_of_iam_keeps_its_code(monkeypatch: pytest.MonkeyPatch, error: ApiError) -> None:
    arn = f"arn:aws:sts::{AWS_ID}:assumed-role/OrganizationAccountAccessRole/awsAccountOperator"
    answering(monkeypatch, Services, "ask_identity", PAYER)
    answering(monkeypatch, Payer, "assume_role", (arn, object()))
    answering(monkeypatch, Services, "iam", error)
    assert refused(Kube()) is error
