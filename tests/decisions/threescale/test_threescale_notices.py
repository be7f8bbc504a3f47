"""Which Kubernetes Events an object gets, with the reasons that people's alerts know."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from domain.decision import Action
from domain.identity import Key, Kind
from domain.threescale import (
    ACTIVE_DOC,
    APPLICATION,
    APPLICATION_AUTH,
    BACKEND,
    CUSTOM_POLICY_DEFINITION,
    DEVELOPER_ACCOUNT,
    DEVELOPER_USER,
    OPEN_API,
    PRODUCT,
    TENANT,
)
from domain.threescale.actions import DeleteObject
from domain.threescale.calls import Resource, Write
from domain.threescale.notices import left_aside, notices
from domain.threescale.observed import Phase, acts
from domain.threescale.open_api_authentication import NO_SECURITY

LATER = datetime(2026, 11, 22, tzinfo=UTC)


KEY = Key(kind="Application", namespace="shop", name="app", uid="1")


def notices_of(kind: Kind, phase: Phase, why: str, *actions: Action, **more: Any) -> list[tuple[str, str, str, str]]:
    decision = acts(phase, why, *actions, **more)
    return [(each.type, each.reason, each.message, kind.reporter or kind.name) for each in notices(kind, decision)]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (PRODUCT, "Invalid Product Spec"),
        (BACKEND, "Invalid Backend Spec"),
        (ACTIVE_DOC, "Invalid ActiveDoc Spec"),
        (OPEN_API, "Invalid OpenAPI Spec"),
        (CUSTOM_POLICY_DEFINITION, "Invalid CustomPolicyDefinition Spec"),
        (DEVELOPER_ACCOUNT, "Invalid developer account spec"),
        (DEVELOPER_USER, "Invalid developer user spec"),
        (APPLICATION, "Invalid application Spec"),
    ],
)
def test_a_spec_at_fault_is_warned_of(kind: Kind, reason: str) -> None:
    assert notices_of(kind, Phase.INVALID, "it is so") == [("Warning", reason, "it is so", kind.name)]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (PRODUCT, "Failed to delete product"),
        (APPLICATION, "Failed to delete application"),
        (DEVELOPER_ACCOUNT, "Failed to delete developer account"),
        (DEVELOPER_USER, "Failed to delete developer user"),
        (TENANT, "Failed to delete tenant"),
    ],
)
def test_a_deletion_that_3scale_refuses_is_warned_of(kind: Kind, reason: str) -> None:
    assert notices_of(kind, Phase.DELETING, "403", deadline=LATER) == [("Warning", reason, "403", kind.name)]
    assert not notices_of(kind, Phase.DELETING, "403", deadline=LATER, waits_for=("Product/shop/goods",))


def test_a_failure_is_a_reconcile_error_and_waiting_is_none() -> None:
    assert notices_of(PRODUCT, Phase.FAILED, "500") == [("Warning", "ReconcileError", "500", "Product")]
    assert notices_of(APPLICATION_AUTH, Phase.FAILED, "500")[0][3] == "Application"
    for phase in (Phase.NEW, Phase.SYNCING, Phase.SYNCED, Phase.ORPHAN, Phase.DELETING, Phase.GONE):
        assert not notices_of(PRODUCT, phase, "so")


def test_parts_left_out_of_a_document_have_their_own_reason() -> None:
    aside = left_aside(NO_SECURITY)
    assert (aside.type, aside.reason, aside.message) == ("Warning", NO_SECURITY, NO_SECURITY)
    assert NO_SECURITY == "No security requirements are found in OAS"


def test_a_deletion_along_with_another_object_is_announced() -> None:
    why, deletion = "its account does not exist any more", DeleteObject(key=KEY)

    assert notices_of(APPLICATION, Phase.DELETING, why, deletion) == [("Normal", "GoesAlong", why, "Application")]
    assert notices_of(APPLICATION, Phase.SYNCED, "done", deletion) == []


def test_replacing_an_application_is_announced() -> None:
    write = Write(resource=Resource.APPLICATION, method="DELETE", path="accounts/1/applications/2", id=2)
    (found,) = notices_of(APPLICATION, Phase.SYNCING, "", write)

    assert found[:2] == ("Normal", "MadeAnew")
    assert notices_of(APPLICATION, Phase.DELETING, "", write) == []


def test_a_tenant_warns_of_a_missing_secret_and_others_wait_in_silence() -> None:
    why, waits_for = "Secret master not found", ("Secret/shop/master",)
    assert notices_of(TENANT, Phase.ORPHAN, why, waits_for=waits_for) == [("Warning", "ReconcileError", why, "Tenant")]
    assert notices_of(PRODUCT, Phase.ORPHAN, why, waits_for=waits_for) == []
