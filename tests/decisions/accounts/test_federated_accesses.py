"""What an AWSFederatedAccountAccess needs, as a table: labels before effects, healing, renewal, and a clean end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from account_objects import refusal
from federated_objects import (
    ACCOUNT_ID,
    CUSTOM,
    NOW,
    OUTSIDER,
    STATEMENT,
    TENANT,
    access,
    access_world,
    condition,
    live,
    obliging,
    refusing,
    role,
)

from domain.accounts.config import OperatorConfig
from domain.accounts.constants import FINALIZER
from domain.accounts.federated.access import decide, wanted_digest
from domain.accounts.federated.actions import AttachAccessPolicies, EnsureAccessRole, RevokeAccess
from domain.accounts.federated.custom_policy import document
from domain.accounts.federated.observed import FederatedAccessWorld
from domain.accounts.federated.resources import AWSFederatedAccountAccess, CustomPolicy
from domain.control_annotations import RETRIED, RETRY
from domain.decision import Action, Outcome, WhenUnwanted, World
from domain.refusal import ErrorType
from domain.runner import State
from domain.writes import DropFinalizer
from workflows.accounts import FederatedAccessWorkflow

GRANT = ["ensure_access_policy", "ensure_access_role", "attach_access_policies"]
UID = "bcd456"
LABELS = {"uid": UID, "awsAccountID": ACCOUNT_ID, "awsFederatedRoleName": "read-only"}
URL = f"https://signin.aws.amazon.com/switchrole?account={ACCOUNT_ID}&roleName=read-only-{UID}"
# As the replaced operator leaves one: nothing of ours on it.
FOUND: dict[str, Any] = {"state": "Ready", "consoleURL": URL, "conditions": [{"type": "Ready", "status": "True"}]}
KEPT: dict[str, Any] = {"labels": LABELS, "finalizers": [FINALIZER]}
DELETING = {**KEPT, "deletionTimestamp": "2026-05-01T11:59:00Z"}


def of(world: World) -> AWSFederatedAccountAccess:
    assert isinstance(world, FederatedAccessWorld)
    return world.access


def granted(**spec: Any) -> AWSFederatedAccountAccess:
    """An access that Perdure has granted."""
    digest = wanted_digest(access_world(access(), role()), role())
    found = access(meta=KEPT, status={**FOUND, "granted": digest}, **spec)
    assert isinstance(found, AWSFederatedAccountAccess)
    return found


def test_a_new_access_is_marked_before_the_first_effect_and_becomes_ready() -> None:
    world, decision, done = live(access_world(access(), role()))
    assert done == ["write object", "identify_customer", "write object", *GRANT, "write status"]
    found = of(world)
    uid = found.metadata.labels["uid"]
    assert found.metadata.finalizers == (FINALIZER,)
    assert found.metadata.labels == {"uid": uid, "awsAccountID": ACCOUNT_ID, "awsFederatedRoleName": "read-only"}
    assert len(uid) == 6
    assert found.status.state == "Ready"
    url = f"https://signin.aws.amazon.com/switchrole?account={ACCOUNT_ID}&roleName=read-only-{uid}"
    assert found.status.console_url == url
    shown = condition(found, "Ready")
    assert shown is not None
    assert (shown.status, shown.reason, shown.message) == ("True", "Ready", "Account Access Ready")
    assert [c.type for c in found.status.conditions] == ["Ready"]
    assert (decision.outcome, decision.owner) == (Outcome.SETTLED, "AWSFederatedRole/aws-account-operator/read-only")


def test_the_uid_is_derived_so_that_a_lost_label_finds_what_was_made() -> None:
    first, _, _ = live(access_world(access(), role()))
    second, _, _ = live(access_world(access(), role()))
    assert of(first).metadata.labels["uid"] == of(second).metadata.labels["uid"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"awsCustomerCredentialSecret": {"name": "customer", "namespace": "other"}},
            "Invalid spec: AWSCustomerCredentialSecretNamespaceMismatch",
        ),
        (
            {"awsCustomerCredentialSecret": {"name": "", "namespace": TENANT}},
            "Invalid spec: awsCustomerCredentialSecret does not name a Secret",
        ),
    ],
)
def test_a_fault_in_the_spec_fails_it_and_touches_nothing_else(spec: dict[str, Any], message: str) -> None:
    world, decision, done = live(access_world(access(**spec), role()))
    shown = condition(of(world), "Failed")
    assert shown is not None
    assert (done, of(world).status.state) == (["write status"], "Failed")
    assert (shown.reason, shown.message) == ("Failed", message)
    assert decision.outcome is Outcome.WAITING


def test_a_secret_without_a_namespace_is_one_of_the_access_s_own() -> None:
    nameless = access(awsCustomerCredentialSecret={"name": "customer", "namespace": ""})
    _, _, done = live(access_world(nameless, role()), look := _Recorder())
    assert "identify_customer" in done
    assert look.secrets == {TENANT}


class _Recorder:
    """An obliging cloud that notes whose Secrets were asked for."""

    def __init__(self) -> None:
        self.secrets: set[str] = set()

    def __call__(self, action: Any) -> Any:
        if hasattr(action, "secret"):
            self.secrets.add(action.secret.namespace)
        return obliging(action)


def test_an_access_whose_role_is_missing_heals_when_the_role_comes() -> None:
    world, decision, done = live(access_world(access(), None))
    shown = condition(of(world), "Failed")
    assert shown is not None
    assert (done, shown.message, of(world).metadata.finalizers) == (
        ["write status"],
        "Requested role does not exist",
        (),
    )
    assert decision.waits_for == ("AWSFederatedRole/aws-account-operator/read-only",)
    healed, _, _ = live(world.model_copy(update={"role": role()}))
    assert of(healed).status.state == "Ready"


def test_a_role_that_is_being_deleted_grants_nothing_new() -> None:
    going = role(meta={"deletionTimestamp": "2026-05-01T11:00:00Z"})
    _, _, done = live(access_world(access(), going))
    assert done == ["write status"]


@pytest.mark.parametrize(
    ("activity", "message"),
    [
        ("aws.identify_customer", "Failed to get account ID information"),
        ("aws.ensure_access_policy", "Failed to create custom policy"),
        ("aws.ensure_access_role", "Failed to create role"),
        ("aws.attach_access_policies", "Failed to attach policies to role"),
    ],
)
def test_each_step_that_is_refused_fails_it_aloud_and_is_tried_again(activity: str, message: str) -> None:
    world, decision, _ = live(access_world(access(), role()), refusing(activity))
    found = of(world)
    shown, detail = condition(found, "Failed"), condition(found, "Synced")
    assert shown is not None
    assert detail is not None
    assert (found.status.state, shown.message) == ("Failed", message)
    assert (detail.status, detail.reason) == ("False", "AccessDenied")
    assert "is refused" in (detail.message or "")
    assert decision.outcome is Outcome.WAITING
    assert [action.activity for action in decision.actions] == [activity]
    healed, _, done = live(world.model_copy(update={"refusals": {}}))
    assert of(healed).status.state == "Ready"
    synced = condition(of(healed), "Synced")
    assert synced is not None
    assert synced.status == "True"
    assert done[0] == activity.split(".")[1]


def test_the_same_refusal_of_another_request_writes_nothing() -> None:
    world, _, _ = live(access_world(access(), role()), refusing("aws.identify_customer"))
    (slot,) = world.refusals
    before = world.refusals[slot]
    other = before.model_copy(update={"message": f"{before.message} [request 2]", "attempts": 2})
    decision = decide(world.model_copy(update={"refusals": {slot: other}}), NOW)  # type: ignore[arg-type]
    assert [action.activity for action in decision.actions] == ["aws.identify_customer"]


def test_a_refusal_of_another_step_is_shown_though_its_reason_is_the_same() -> None:
    world, _, _ = live(access_world(access(), role()), refusing("aws.ensure_access_policy"))
    world, _, _ = live(world.model_copy(update={"refusals": {}}), refusing("aws.ensure_access_role"))
    synced = condition(of(world), "Synced")
    assert synced is not None
    assert (synced.message or "").startswith("Failed to create role: ")


def test_a_settled_access_asks_for_nothing() -> None:
    decision = decide(access_world(granted(), role()), NOW)
    assert (decision.actions, decision.outcome) == ((), Outcome.SETTLED)


@pytest.mark.parametrize(
    "changes",
    [
        {"roleDescription": "other"},
        {"awsManagedPolicies": []},
        {"awsCustomPolicy": {**CUSTOM, "awsStatements": [{**STATEMENT, "effect": "Deny"}]}},
    ],
)
def test_a_changed_role_is_granted_again_while_the_access_stays_ready(changes: dict[str, Any]) -> None:
    world, _, done = live(access_world(granted(), role(**changes)))
    assert done == [*GRANT, "write status"]
    assert of(world).status.state == "Ready"
    refused, decision, _ = live(access_world(granted(), role(**changes)), refusing("aws.ensure_access_policy"))
    synced = condition(of(refused), "Synced")
    assert synced is not None
    assert (of(refused).status.state, synced.status) == ("Ready", "False")
    assert condition(of(refused), "Failed") is None
    assert decision.outcome is Outcome.WAITING


def test_another_outside_identity_is_trusted_instead() -> None:
    world = access_world(granted(externalCustomerAWSIAMARN="arn:aws:iam::1:user/other"), role())
    _, _, done = live(world)
    assert done == [*GRANT, "write status"]


def test_grants_of_the_replaced_operator_are_only_completed() -> None:
    found = access(meta=KEPT, status=FOUND)
    world, _, done = live(access_world(found, role()), look := _Collecting(AttachAccessPolicies, "exact"))
    assert done == [*GRANT, "write status"]
    assert look.found == [False]
    assert of(world).status.granted
    live(access_world(granted(), role(roleDescription="other")), look)
    assert look.found == [False, True]


class _Collecting:
    """AWS that does everything. It collects a field of the actions of one kind."""

    def __init__(self, kind: type[Action], field: str) -> None:
        self.found: list[object] = []
        self._kind, self._field = kind, field

    def __call__(self, action: Any) -> Any:
        if isinstance(action, self._kind):
            self.found.append(getattr(action, self._field))
        return obliging(action)


def test_names_made_by_the_replaced_operator_stay() -> None:
    found = access(meta=KEPT, status=FOUND)
    names: list[str] = []
    live(access_world(found, role()), lambda a: names.append(a.name) if isinstance(a, EnsureAccessRole) else None)
    assert names == [f"read-only-{UID}"]


def test_a_tenant_cannot_move_it_by_its_labels() -> None:
    labels = {**LABELS, "uid": "zzzzzz", "awsAccountID": "444455556666"}
    moved = granted()
    moved = moved.model_copy(update={"metadata": moved.metadata.model_copy(update={"labels": labels})})
    world, _, done = live(access_world(moved, role()))
    assert done == ["write object"]
    assert of(world).metadata.labels == LABELS


def test_a_label_that_came_with_a_copy_is_no_account_until_the_keys_say_so() -> None:
    copied = access(meta={**KEPT, "labels": {**LABELS, "awsAccountID": "444455556666"}})
    world, _, done = live(access_world(copied, role()))
    assert done == ["identify_customer", "write object", *GRANT, "write status"]
    assert of(world).metadata.labels == LABELS
    assert of(world).status.console_url == URL


def test_a_copied_label_that_comes_back_midway_does_not_win_over_the_keys() -> None:
    copied = access(meta={**KEPT, "labels": {**LABELS, "awsAccountID": "444455556666"}})
    begun = access_world(copied, role()).learn(account_id=ACCOUNT_ID, policy="of an earlier wish")
    world, _, done = live(begun)
    assert done == ["write object", *GRANT, "write status"]
    assert of(world).metadata.labels == LABELS


def test_the_account_in_the_status_wins_over_the_identified_one() -> None:
    world, _, done = live(access_world(granted(), role(roleDescription="another")).learn(account_id="444455556666"))
    assert "write object" not in done
    assert of(world).metadata.labels == LABELS


@pytest.mark.parametrize(
    "condition",
    [{"type": "Failed", "message": "Failed to create role"}, {"type": "Ready", "message": "Account Access Ready"}],
)
def test_a_label_under_which_a_role_may_exist_stays(condition: dict[str, str]) -> None:
    labels = {**LABELS, "awsAccountID": "444455556666"}
    failed = access(meta={**KEPT, "labels": labels}, status={"state": "Failed", "conditions": [condition]})
    world, _, done = live(access_world(failed, role()), refusing("aws.ensure_access_policy", code="IdentityMismatch"))
    assert "identify_customer" not in done
    assert of(world).metadata.labels == labels


def test_another_role_replaces_the_first_which_goes_before() -> None:
    other = role(meta={"name": "admin"})
    moved = granted(awsFederatedRole={"name": "admin", "namespace": "aws-account-operator"})
    world, _, done = live(access_world(moved, other))
    assert done == ["write object", "revoke_access", "write status", *GRANT, "write status"]
    assert of(world).status.console_url.endswith(f"roleName=admin-{UID}")


def redirected(*, forgotten: bool, **meta: Any) -> FederatedAccessWorld:
    """An access whose role was made but got no policies, and whose spec then names another AWSFederatedRole."""
    failed, _, _ = live(access_world(access(), role()), refusing("aws.attach_access_policies"))
    before = of(failed)
    there = access(
        meta={**before.metadata.model_dump(mode="json"), **meta},
        status=before.status.model_dump(mode="json"),
        awsFederatedRole={"name": "admin", "namespace": "aws-account-operator"},
    )
    world = access_world(there, role(meta={"name": "admin"}))
    return world if forgotten else world.model_copy(update={"known": failed.known})


@pytest.mark.parametrize("forgotten", [False, True])
def test_a_role_that_was_made_before_the_spec_named_another_is_deleted(forgotten: bool) -> None:
    look = _Collecting(RevokeAccess, "role")
    world, decision, done = live(redirected(forgotten=forgotten), look)
    uid = of(world).metadata.labels["uid"]
    assert done == ["revoke_access", "write object", *GRANT, "write status"]
    assert look.found == [f"read-only-{uid}"]
    assert of(world).metadata.labels["awsFederatedRoleName"] == "admin"
    assert of(world).status.console_url.endswith(f"roleName=admin-{uid}")
    assert decision.outcome is Outcome.SETTLED


@pytest.mark.parametrize("forgotten", [False, True])
def test_a_deletion_finds_the_role_that_was_made_before_the_spec_named_another(forgotten: bool) -> None:
    look = _Collecting(RevokeAccess, "role")
    world, _, done = live(redirected(forgotten=forgotten, deletionTimestamp="2026-05-01T11:59:00Z"), look)
    assert done == ["revoke_access", "drop"]
    assert look.found == [f"read-only-{of(world).metadata.labels['uid']}"]


def test_a_persons_retry_is_honoured_once() -> None:
    found = access(meta={**KEPT, "annotations": {RETRY: "1"}}, status={"state": "Failed", "conditions": []})
    world, _, done = live(access_world(found, role()))
    assert done == ["write object", "identify_customer", *GRANT, "write status"]
    assert of(world).metadata.annotations[RETRIED] == "1"


def test_a_persons_retry_has_what_was_granted_compared_with_aws_once_more() -> None:
    found = granted()
    annotated = found.metadata.model_copy(update={"annotations": {RETRY: "1"}})
    look = _Collecting(AttachAccessPolicies, "exact")
    world, decision, done = live(access_world(found.model_copy(update={"metadata": annotated}), role()), look)
    assert done == ["write status", "write object", *GRANT, "write status"]
    assert look.found == [True]
    assert of(world).status.granted == found.status.granted
    assert decision.outcome is Outcome.SETTLED
    assert decision.phase in FederatedAccessWorkflow.retryable_phases


def test_a_role_name_too_long_for_iam_is_said_without_asking() -> None:
    long = "r" * 58
    named = access(awsFederatedRole={"name": long, "namespace": "aws-account-operator"})
    world, decision, done = live(access_world(named, role(meta={"name": long})))
    shown = condition(of(world), "Failed")
    assert shown is not None
    assert (done, shown.message) == (["write status"], "Failed to create role")
    assert "58 characters" in decision.why


def test_in_govcloud_names_are_of_its_partition() -> None:
    world = access_world(access(), role()).model_copy(update={"config": OperatorConfig(fedramp=True)})
    partitions: set[str] = set()

    def note(action: Any) -> Any:
        partitions.add(getattr(action, "partition", "aws-us-gov"))
        return obliging(action)

    done, _, _ = live(world, note)
    assert partitions == {"aws-us-gov"}
    assert of(done).status.console_url.startswith("https://signin.amazonaws-us-gov.com/switchrole?")


# --- the end ---


def test_what_a_step_makes_while_the_access_is_deleted_is_deleted_too() -> None:
    begun = access_world(access(meta=KEPT), role()).learn(account_id=ACCOUNT_ID, policy="done")
    state, step = State(begun.learn(policy=wanted_digest(begun, role())), dirty=False).step(decide, NOW)
    (make,) = step.start
    assert isinstance(make, EnsureAccessRole)
    assert make.when_unwanted is WhenUnwanted.AWAITED
    state, step = state.observing(NOW).observed(access_world(access(meta=DELETING), role())).step(decide, NOW)
    (revoke,) = step.start
    state, step = state.finished(revoke.slot, None).step(decide, NOW)
    assert not step.start
    failed = state.failed(make.slot, refusal(ErrorType.INVALID))
    for ended in (state.finished(make.slot, None), state.stopped(make.slot), failed):
        again, step = ended.step(decide, NOW)
        (second,) = step.start
        assert isinstance(second, RevokeAccess)
        _, step = again.finished(second.slot, None).step(decide, NOW)
        assert isinstance(step.start[0], DropFinalizer)


def test_a_deleted_access_takes_its_role_with_it() -> None:
    gone, decision, done = live(access_world(access(meta=DELETING, status=FOUND), role()))
    assert done == ["revoke_access", "drop"]
    assert decision.gone
    assert not gone.exists


@pytest.mark.parametrize("labels", [{}, {"uid": UID}])
def test_an_access_that_made_nothing_just_goes(labels: dict[str, str]) -> None:
    failed = access(meta={**DELETING, "labels": labels}, status={"state": "Failed", "conditions": []})
    _, _, done = live(access_world(failed, role()))
    assert done == ["drop"]


def test_it_cleans_up_though_its_role_is_gone_and_its_labels_are_too() -> None:
    lost = access(meta={**DELETING, "labels": {}}, status=FOUND)
    (action,) = decide(access_world(lost, None), NOW).actions
    assert isinstance(action, RevokeAccess)
    assert (action.account_id, action.role, action.uid) == (ACCOUNT_ID, f"read-only-{UID}", UID)


def test_a_deletion_that_is_refused_says_why_and_ends_after_a_day() -> None:
    world, decision, _ = live(access_world(access(meta=DELETING, status=FOUND), role()), refusing("aws.revoke_access"))
    assert isinstance(world, FederatedAccessWorld)
    assert (decision.outcome, decision.phase) == (Outcome.WAITING, "Deleting")
    assert "is refused" in decision.why
    assert decision.deadline is not None
    later = decide(world, decision.deadline)
    assert [action.summary for action in later.actions] == ["drop the finalizer"]
    assert f"read-only-{UID}" in later.why
    assert decide(world, decision.deadline - timedelta(seconds=1)).actions[0].activity == "aws.revoke_access"


def test_an_unavailable_revocation_is_never_given_up() -> None:
    found = access(meta={**DELETING, "deletionTimestamp": "2026-04-01T00:00:00Z"}, status=FOUND)
    (action,) = decide(access_world(found, role()), NOW).actions
    assert action.activity == "aws.revoke_access"


@pytest.mark.parametrize("type_", [ErrorType.BUG])
def test_a_bug_is_no_fault_of_the_access(type_: ErrorType) -> None:
    world, _, _ = live(access_world(access(), role()), refusing("aws.identify_customer", type_, ""))
    assert of(world).status.state == ""


def test_the_policy_is_written_as_the_replaced_operator_wrote_it() -> None:
    policy = CustomPolicy.model_validate(
        {
            "name": "p",
            "description": "d",
            "awsStatements": [
                {
                    "effect": "Allow",
                    "action": ["s3:GetObject"],
                    "resource": ["*"],
                    "condition": {"StringEquals": {"aws:RequestedRegion": "us-east-1"}},
                    "principal": {"AWS": [OUTSIDER]},
                },
                {"effect": "Deny", "action": ["s3:PutObject"]},
            ],
        }
    )
    assert document(policy) == (
        '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["s3:GetObject"],"Resource":["*"],'
        '"Condition":{"StringEquals":{"aws:RequestedRegion":"us-east-1"}},'
        f'"Principal":{{"AWS":["{OUTSIDER}"]}}}},{{"Effect":"Deny","Action":["s3:PutObject"]}}]}}'
    )
