"""Which Kubernetes Events tell of an object, with the reasons that people's alerts know."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from domain.identity import Kind
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
from domain.threescale.calls import Resource, Write
from domain.threescale.notices import notices, recorder_of
from domain.threescale.open_api_generated import NO_SECURITY
from domain.threescale.work import Phase, Work

LATER = datetime(2026, 11, 22, tzinfo=UTC)


def told(kind: Kind, work: Work) -> list[tuple[str, str, str, str]]:
    return [(each.type, each.reason, each.message, recorder_of(kind)) for each in notices(kind, work)]


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
    assert told(kind, Work(phase=Phase.INVALID, why="it is so")) == [("Warning", reason, "it is so", kind.name)]


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
    refused = Work(phase=Phase.DELETING, why="403", deadline=LATER)

    assert told(kind, refused) == [("Warning", reason, "403", kind.name)]
    assert not told(kind, refused.model_copy(update={"waits_for": ("Product/shop/goods",)}))


def test_what_fails_is_a_reconcile_error_and_what_waits_is_none() -> None:
    assert told(PRODUCT, Work(phase=Phase.FAILED, why="500")) == [("Warning", "ReconcileError", "500", "Product")]
    assert told(APPLICATION_AUTH, Work(phase=Phase.FAILED, why="500"))[0][3] == "Application"
    for phase in (Phase.NEW, Phase.SYNCING, Phase.SYNCED, Phase.ORPHAN, Phase.DELETING, Phase.GONE):
        assert not told(PRODUCT, Work(phase=phase, why="so"))


def test_what_is_left_aside_of_a_document_is_its_own_reason() -> None:
    aside = Work(phase=Phase.SYNCED, why="made", warnings=(NO_SECURITY,))

    assert told(OPEN_API, aside) == [("Warning", NO_SECURITY, NO_SECURITY, "OpenAPI")]
    assert NO_SECURITY == "No security requirements are found in OAS"


def test_who_goes_with_another_is_told_of_before() -> None:
    going = Work(phase=Phase.DELETING, why="its account does not exist any more", delete=True)

    assert told(APPLICATION, going) == [("Normal", "GoesAlong", "its account does not exist any more", "Application")]
    assert told(APPLICATION, Work(phase=Phase.SYNCED, why="done", delete=True)) == []


def test_an_application_that_is_made_anew_says_so() -> None:
    write = Write(resource=Resource.APPLICATION, method="DELETE", path="accounts/1/applications/2", id=2)
    (found,) = told(APPLICATION, Work(phase=Phase.SYNCING, writes=(write,)))

    assert found[:2] == ("Normal", "MadeAnew")
    assert told(APPLICATION, Work(phase=Phase.DELETING, writes=(write,))) == []


def test_a_tenant_warns_of_a_missing_secret_and_others_wait_in_silence() -> None:
    waits = Work(phase=Phase.ORPHAN, why="Secret master not found", waits_for=("Secret/shop/master",))
    assert told(TENANT, waits) == [("Warning", "ReconcileError", "Secret master not found", "Tenant")]
    assert told(PRODUCT, waits) == []
