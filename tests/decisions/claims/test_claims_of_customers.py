"""Claims on accounts that their customers bring: from the Secret to Ready and back; as tables."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from account_objects import (
    AWS_ID,
    NAME,
    NOW,
    account,
    activities,
    ago,
    claim,
    claim_world,
    condition,
    config,
    fold,
    status_of,
    written_condition,
)

from domain.accounts.actions.claim_secrets import DeliverCredentials, HoldInputSecret, LetSecretsGo, RemoveSecret
from domain.accounts.actions.handover import MadeAccount, MakeCustomerAccount
from domain.accounts.claim_lifecycle import decide
from domain.accounts.constants import FINALIZER
from domain.accounts.force_release import FORCE_RELEASE
from domain.accounts.observed import ClaimWorld, InputSecret
from domain.accounts.resources import Account
from domain.control_annotations import PAUSED as PAUSE
from domain.decision import Outcome
from domain.resource import timestamp
from domain.runner import State
from domain.writes import Delete, DropFinalizer, Patch, Written

HELD = InputSecret(complete=True, held=True)
REMOVED = {"secret_removed": True}
FREE = InputSecret(complete=True, held=False)
SUPPORT = f"arn:aws:iam::{AWS_ID}:role/ManagedOpenShift-Support-{NAME[-6:]}"
BYOC = {"byoc": True, "byocAWSAccountID": AWS_ID, "byocSecretRef": {"name": "keys", "namespace": "tenant"}}
STS = {"byoc": True, "manualSTSMode": True, "stsRoleARN": f"arn:aws:iam::{AWS_ID}:role/customer"}
READY = {"state": "Ready", "conditions": [condition("Claimed")]}
DELETED = {"deletionTimestamp": ago(minutes=1)}


def byoc(*, linked: bool = False, spec: dict[str, Any] | None = None, **fields: Any) -> ClaimWorld:
    link = {"accountLink": NAME} if linked else {}
    of = claim(spec={**BYOC, **link, **(spec or {})}, **fields.pop("of", {}))
    return claim_world(of, **{"input_secret": HELD, **fields})


def customers(state: str = "Ready", **fields: Any) -> Account:
    spec = {
        "byoc": True,
        "awsAccountID": AWS_ID,
        "claimLink": "claim",
        "claimLinkNamespace": "tenant",
        "iamUserSecret": f"{NAME}-secret",
        **fields.pop("spec", {}),
    }
    status = {"state": state, "claimed": True, "conditions": fields.pop("conditions", [])}
    return account(spec=spec, status=status, meta={"ownerReferences": [], **fields.pop("meta", {})})


def test_the_customers_secret_is_protected_before_an_account_is_made() -> None:
    assert activities(decide(byoc(input_secret=FREE), NOW)) == ["accounts.hold_input_secret"]
    (make,) = decide(byoc(), NOW).actions
    assert isinstance(make, MakeCustomerAccount)
    assert (make.account_id, make.manual_sts_mode, make.legal_entity.id) == (AWS_ID, False, "entity-1")


def test_a_secret_that_the_claim_names_no_longer_is_not_kept_from_deletion() -> None:
    observed = byoc()  # protects the Secret "keys"
    other = {"byocSecretRef": {"name": "better", "namespace": "tenant"}}
    edited = byoc(spec=other, input_secret=FREE).recall(observed.recall(observed))
    (let_go,) = decide(edited, NOW).actions
    assert isinstance(let_go, LetSecretsGo)
    assert (let_go.input_secret, let_go.secret) == ("keys", "")
    (hold,) = decide(free := fold(edited, let_go, None), NOW).actions
    assert isinstance(hold, HoldInputSecret)
    assert hold.secret == "better"
    assert activities(decide(fold(free, hold, None), NOW)) == ["accounts.make_customer_account"]
    deleted = byoc(spec=other, of={"meta": DELETED}).recall(edited)
    both: list[str] = []
    while isinstance(action := decide(deleted, NOW).actions[0], LetSecretsGo):
        both.append(action.input_secret)
        deleted = fold(deleted, action, None)
    assert both == ["keys", "better"]


def test_a_secret_that_is_protected_while_its_claim_is_deleted_is_let_go() -> None:
    state, step = State(byoc(input_secret=FREE), dirty=False).step(decide, NOW)
    (hold,) = step.start
    ends = byoc(of={"meta": DELETED}, input_secret=None)
    state, step = state.wake().observing(NOW).observed(ends).step(decide, NOW)
    assert not step.cancel  # the finalizer may be set already
    state, step = state.finished("accounts.let_secrets_go", None).step(decide, NOW)
    assert not step.start
    state, step = state.finished(hold.slot, None).step(decide, NOW)
    (let_go,) = step.start
    assert isinstance(let_go, LetSecretsGo)
    assert let_go.input_secret == "keys"
    _, step = state.finished(let_go.slot, None).step(decide, NOW)
    assert isinstance(step.start[0], DropFinalizer)


def test_the_account_that_was_made_is_linked_and_the_state_stays_blank() -> None:
    (link,) = decide(byoc(known={"made": NAME}), NOW).actions
    assert isinstance(link, Patch)
    assert (link.subresource, link.patch) == ("", {"spec": {"accountLink": NAME}})
    waiting = decide(byoc(linked=True, account=customers("Creating")), NOW)
    assert (waiting.outcome, waiting.actions, waiting.waits_for) == (Outcome.WAITING, (), (f"Account/{NAME}",))


def test_a_blanked_link_to_an_account_that_is_gone_leads_to_another_account() -> None:
    unlinked = byoc(known={"made": NAME})
    (link,) = decide(unlinked, NOW).actions
    linked = fold(unlinked, link, Written(resource_version="4"))
    blanked = byoc(of={"status": READY}).recall(linked)
    (make,) = decide(blanked, NOW).actions
    assert isinstance(make, MakeCustomerAccount)


def test_ready_comes_before_the_secret_and_the_support_role() -> None:
    ready = decide(byoc(linked=True, account=customers()), NOW)
    assert status_of(ready)["state"] == "Ready"
    claimed = written_condition(ready, "Claimed")
    assert (claimed["reason"], claimed["message"]) == ("AccountClaimed", "BYOC account ready")
    (deliver,) = decide(byoc(linked=True, account=customers(), of={"status": READY}), NOW).actions
    assert isinstance(deliver, DeliverCredentials)
    assert (deliver.secret, deliver.input_secret, deliver.support_role_arn) == ("aws", "keys", SUPPORT)


def test_a_claim_that_has_all_asks_for_nothing() -> None:
    has_all = byoc(linked=True, spec={"supportRoleARN": SUPPORT}, account=customers(), of={"status": READY})
    settled = decide(has_all.model_copy(update={"delivered": True}), NOW)
    assert (settled.outcome, settled.actions) == (Outcome.SETTLED, ())
    assert activities(decide(has_all, NOW)) == ["accounts.deliver_credentials"]  # the Secret was deleted


def test_in_sts_mode_there_is_neither_secret_nor_support_role() -> None:
    (make,) = decide(byoc(spec=STS, input_secret=None), NOW).actions
    assert isinstance(make, MakeCustomerAccount)
    assert (make.manual_sts_mode, make.account_id) == (True, AWS_ID)
    of = customers(spec={"manualSTSMode": True, "iamUserSecret": ""})
    done = decide(byoc(linked=True, spec=STS, input_secret=None, account=of, of={"status": READY}), NOW)
    assert (done.outcome, done.actions) == (Outcome.SETTLED, ())


def test_an_account_that_is_made_while_its_claim_is_deleted_is_deleted_too() -> None:
    state, step = State(byoc(), dirty=False).step(decide, NOW)
    (make,) = step.start
    ends = byoc(of={"meta": DELETED})
    state, step = state.wake().observing(NOW).observed(ends).step(decide, NOW)
    assert not step.cancel  # the API server may already have the request
    state, step = state.finished("accounts.let_secrets_go", None).step(decide, NOW)
    assert not step.start  # the finalizer stays until the Account is made
    state, step = state.finished(make.slot, MadeAccount(made=NAME)).step(decide, NOW)
    (delete,) = step.start
    assert isinstance(delete, Delete)
    assert delete.key.name == NAME
    state, step = state.finished(delete.slot, None).observing(NOW).observed(ends).step(decide, NOW)
    (drop,) = step.start
    assert isinstance(drop, DropFinalizer)


@pytest.mark.parametrize(
    ("secret", "reason"),
    [(None, "BYOCSecretMissing"), (InputSecret(complete=False, held=False), "BYOCSecretIncomplete")],
)
def test_without_the_customers_key_no_account_is_made_and_the_claim_says_why(
    secret: InputSecret | None, reason: str
) -> None:
    decision = decide(byoc(input_secret=secret), NOW)
    shown = written_condition(decision, "AuthenticationFailed")
    assert (shown["status"], shown["reason"]) == ("True", reason)
    assert status_of(decision)["state"] == ""
    assert "Secret tenant/keys" in decision.why
    again = byoc(input_secret=secret, of={"status": status_of(decision)})
    assert activities(decide(again, NOW)) == ["accounts.hold_input_secret"]  # refused until there is a key in it
    corrected = decide(byoc(of={"status": status_of(decision)}), NOW)
    assert written_condition(corrected, "AuthenticationFailed")["status"] == "False"


def test_the_missing_secret_that_a_claim_reports_is_the_one_that_it_names_now() -> None:
    before = status_of(decide(byoc(input_secret=None), NOW))
    renamed = {"byocSecretRef": {"name": "other-keys", "namespace": "tenant"}}
    after = decide(byoc(input_secret=None, spec=renamed, of={"status": before}), NOW + timedelta(hours=1))
    shown = written_condition(after, "AuthenticationFailed")
    assert shown["message"].startswith("Secret tenant/other-keys ")
    assert shown["lastTransitionTime"] == timestamp(NOW), "its status is the same"


def test_an_obstacle_to_entering_the_account_shows_on_the_claim() -> None:
    trouble = condition("AuthenticationError", reason="InvalidClientTokenId", message="unknown key")
    decision = decide(byoc(linked=True, account=customers("Creating", conditions=[trouble])), NOW)
    shown = written_condition(decision, "AuthenticationFailed")
    assert (shown["reason"], shown["message"]) == ("InvalidClientTokenId", "unknown key")
    over = decide(byoc(linked=True, account=customers(), of={"status": status_of(decision)}), NOW)
    assert written_condition(over, "AuthenticationFailed")["status"] == "False"
    assert status_of(over)["state"] == "Ready"


def test_a_failed_account_makes_the_claim_an_error_with_the_accounts_reason() -> None:
    why = condition("AccountCreationFailed", reason="RegionNotSupported", message="mars-1 is not supported")
    decision = decide(byoc(linked=True, account=customers("Failed", conditions=[why])), NOW)
    assert status_of(decision)["state"] == "Error"
    failed = written_condition(decision, "CCSAccountClaimFailed")
    assert (failed["reason"], failed["message"]) == ("CCSAccountClaimFailed", "CCS Account Failed")
    internal = written_condition(decision, "InternalError")
    assert (internal["reason"], internal["message"]) == ("RegionNotSupported", "mars-1 is not supported")
    linked = byoc(linked=True, account=customers("Failed", conditions=[why]), of={"status": status_of(decision)})
    assert decide(linked, NOW).actions == ()
    healed = decide(byoc(linked=True, account=customers(), of={"status": status_of(decision)}), NOW)
    assert status_of(healed)["state"] == "Ready"


def test_a_claim_has_the_reason_of_its_accounts_last_failure() -> None:
    again = condition("AccountCreationFailed", reason="RegionNotSupported", message="mars-1 is not supported")
    before = condition("AuthorizationError", entered=ago(days=1), reason="AccessDenied", message="denied")
    decision = decide(byoc(linked=True, account=customers("Failed", conditions=[again, before])), NOW)
    assert written_condition(decision, "InternalError")["reason"] == "RegionNotSupported"


def test_a_faulty_claim_is_an_error_and_goes_on_once_it_is_corrected() -> None:
    decision = decide(byoc(spec={"byocAWSAccountID": ""}), NOW)
    assert written_condition(decision, "InvalidAccountClaim")["reason"] == "BYOCAccountIDMissing"
    corrected = decide(byoc(of={"status": status_of(decision)}), NOW)
    assert status_of(corrected)["state"] == ""


def test_another_tenants_account_is_neither_used_nor_deleted() -> None:
    """W14, and trap 22: a tenant may write any accountLink."""
    stranger = customers(spec={"claimLink": "other"})
    used = decide(byoc(linked=True, account=stranger), NOW)
    assert (used.outcome, used.actions) == (Outcome.WAITING, ())
    released = decide(byoc(linked=True, account=stranger, of={"meta": DELETED}), NOW)
    assert activities(released) == ["accounts.let_secrets_go"]


@pytest.mark.parametrize("payer", [{"protected": (AWS_ID,)}, {"config": config(payer_account_ids=AWS_ID)}])
def test_a_payers_account_cannot_be_brought_and_does_not_block_the_release(payer: dict[str, Any]) -> None:
    assert decide(byoc(**payer), NOW).actions == ()
    assert activities(decide(byoc(of={"meta": DELETED}, **payer), NOW)) == ["accounts.let_secrets_go"]


# --- release ---


def test_release_deletes_the_secret_and_account_and_drops_secret_finalizers_last() -> None:
    of = {"meta": DELETED, "status": READY}
    (remove,) = decide(byoc(linked=True, account=customers(), of=of), NOW).actions
    assert isinstance(remove, RemoveSecret)
    assert (remove.account, remove.secret) == (NAME, "aws")
    (delete,) = decide(byoc(linked=True, account=customers(), of=of, known=REMOVED), NOW).actions
    assert isinstance(delete, Delete)
    assert delete.key == customers().key
    cleaning = decide(byoc(linked=True, account=customers(meta=DELETED), of=of), NOW)
    assert (cleaning.outcome, cleaning.actions, cleaning.waits_for) == (Outcome.WAITING, (), (f"Account/{NAME}",))
    (let_go,) = decide(byoc(linked=True, of=of), NOW).actions
    assert isinstance(let_go, LetSecretsGo)
    assert (let_go.input_secret, let_go.secret) == ("keys", "aws")
    (drop,) = decide(byoc(linked=True, of=of, known={"secrets_let_go": True}), NOW).actions
    assert isinstance(drop, Patch)
    assert drop.patch == {"metadata": {"finalizers": []}}


def test_a_release_waits_for_federated_accesses_that_end_with_it() -> None:
    """Its support role and Secret let us in to take them back."""
    going = byoc(linked=True, account=customers(), of={"meta": DELETED, "status": READY}, accesses=("reader",))
    decision = decide(going, NOW)
    assert (decision.outcome, decision.actions) == (Outcome.WAITING, ())
    assert decision.waits_for == ("AWSFederatedAccountAccess/tenant/reader",)
    assert decision.deadline is not None
    assert activities(decide(going, decision.deadline)) == ["accounts.remove_secret"]
    assert activities(decide(going.model_copy(update={"accesses": ()}), NOW)) == ["accounts.remove_secret"]


def test_a_persons_word_lets_a_release_go_on_without_its_accesses() -> None:
    deleted_with_release = {
        "meta": {**DELETED, "annotations": {FORCE_RELEASE: "the customer has left"}},
        "status": READY,
    }
    going = byoc(linked=True, account=customers(), of=deleted_with_release, accesses=("reader",), known=REMOVED)
    assert activities(decide(going, NOW)) == ["kube.delete"]


PAUSED = {"annotations": {PAUSE: "true"}}


def test_a_paused_account_is_neither_handed_over_nor_deleted_until_it_is_resumed() -> None:
    paused = customers(meta=PAUSED)
    ready = {"spec": {"supportRoleARN": SUPPORT}, "of": {"status": READY}}
    for world in (
        byoc(linked=True, account=paused),  # not notified as Ready yet
        byoc(linked=True, account=paused, of={"status": READY}),
        byoc(linked=True, account=paused, of={"meta": DELETED, "status": READY}),
    ):
        decision = decide(world, NOW)
        assert (decision.outcome, decision.actions) == (Outcome.WAITING, ())
        assert (decision.why, decision.waits_for) == (f"Account {NAME} is paused", (f"Account/{NAME}",))
        assert decide(world.model_copy(update={"account": customers()}), NOW).actions
    assert decide(byoc(linked=True, account=paused, delivered=True, **ready), NOW).outcome is Outcome.SETTLED


def test_a_paused_account_is_released_by_a_persons_annotation() -> None:
    deleted_with_release = {
        "meta": {**DELETED, "annotations": {FORCE_RELEASE: "the customer has left"}},
        "status": READY,
    }
    paused = byoc(linked=True, account=customers(meta=PAUSED), of=deleted_with_release, known=REMOVED)
    assert activities(decide(paused, NOW)) == ["kube.delete"]


def test_a_release_needs_neither_the_customers_secret_nor_the_account() -> None:
    """Upstream's claim wedges when the Secret is gone, and a pool's when the Account is."""
    of = {"meta": DELETED, "status": READY}
    without_secret = byoc(linked=True, input_secret=None, account=customers(), of=of, known=REMOVED)
    assert activities(decide(without_secret, NOW)) == ["kube.delete"]
    assert activities(decide(byoc(linked=True, input_secret=None, of=of), NOW)) == ["accounts.let_secrets_go"]


def test_a_secret_that_was_never_ours_stays_whatever_is_in_it() -> None:
    """Tenants name one in every claim, as the field is required."""
    sts = byoc(linked=True, spec=STS, input_secret=None, of={"meta": DELETED, "status": READY})
    never = byoc(linked=True, of={"meta": DELETED, "status": {"state": "Error", "conditions": []}})
    given = byoc(linked=True, of={"meta": DELETED, "status": READY})
    named = []
    for each in (sts, never, given):
        (let_go,) = decide(each, NOW).actions
        assert isinstance(let_go, LetSecretsGo)
        named.append(let_go.secret)
    assert named == ["", "", "aws"]
    for each in (sts, never):
        with_account = each.model_copy(update={"account": customers()})
        assert activities(decide(with_account, NOW)) == ["kube.delete"]


def test_a_customers_own_secret_is_not_removed_where_the_claim_names_it_twice() -> None:
    one = {"awsCredentialSecret": {"name": "keys", "namespace": "tenant"}}
    of = {"meta": DELETED, "status": READY}
    assert activities(decide(byoc(linked=True, spec=one, account=customers(), of=of), NOW)) == ["kube.delete"]


def test_nothing_is_released_while_others_hold_the_claim() -> None:
    of = {"meta": {**DELETED, "finalizers": [FINALIZER, "fleet"]}}
    decision = decide(byoc(linked=True, account=customers(), of=of), NOW)
    assert (decision.actions, decision.waits_for) == ((), ("other finalizers",))


def test_a_release_that_is_stuck_says_why_and_how_to_let_it_go() -> None:
    failed = [condition("AccountClientError", message="the role is gone")]
    stuck = customers("Failed", conditions=failed, meta=DELETED)
    decision = decide(byoc(linked=True, account=stuck, of={"meta": DELETED, "status": READY}), NOW)
    blocked = written_condition(decision, "ReleaseBlocked")
    assert "the role is gone" in blocked["message"]
    assert FORCE_RELEASE in blocked["message"]
    assert decision.outcome is Outcome.WAITING


def test_the_state_of_a_claim_decides_its_release_not_its_present_spec() -> None:
    pools = account(spec={"claimLink": "claim", "claimLinkNamespace": "tenant", "awsAccountID": AWS_ID})
    turned = decide(byoc(linked=True, account=pools, of={"meta": DELETED, "status": READY}), NOW)
    assert "accounts.let_secrets_go" not in activities(turned)
    assert "kube.delete" not in activities(turned)
