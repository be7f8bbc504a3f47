"""Fleet managers' claims: a role in the place of a key, and its end before the account is anybody else's; as tables."""

from __future__ import annotations

from typing import Any

import pytest
from account_objects import (
    AWS_ID,
    NAME,
    NOW,
    activities,
    ago,
    claim,
    claim_world,
    config,
    fold,
    pool,
    ready_account,
    refusal,
    settle,
)

from activities.aws.fleet_manager_role import policy
from domain.accounts.actions.claim_secrets import DeliverRole
from domain.accounts.actions.handover import Fulfil, Release, ReleaseAccount
from domain.accounts.actions.iam_identities import EnsureFleetRole
from domain.accounts.claim_lifecycle import decide
from domain.accounts.observed import ClaimWorld
from domain.accounts.pool import waits
from domain.control_annotations import PAUSED
from domain.refusal import ErrorType
from domain.resource import timestamp
from domain.runner import State

PRINCIPAL = "arn:aws:iam::999999999999:role/fleet"
ROLE = f"arn:aws:iam::{AWS_ID}:role/managed-sts-role"
ON = {"feature.accountclaim_fleet_manager_trusted_arn": "true", "accountpool": "pool: {default: true}\nfm: {}"}
PENDING = {"state": "Pending", "conditions": []}


def fleet(*, feature: bool = True, spec: dict[str, Any] | None = None, **fields: Any) -> ClaimWorld:
    of = claim(
        spec={
            "fleetManagerConfig": {"trustedARN": PRINCIPAL},
            "accountPool": "fm",
            "accountLink": NAME,
            "awsCredentialSecret": {"name": "", "namespace": ""},
            **(spec or {}),
        },
        **{"status": PENDING, **fields.pop("of", {})},
    )
    link = {"claimLink": "claim", "claimLinkNamespace": "tenant", "accountPool": "fm"}
    account = ready_account(spec={**link, **fields.pop("account", {})})
    return claim_world(of, account=account, config=config(**ON) if feature else config(), **fields)


def test_the_account_is_placed_without_a_key_then_gets_the_role() -> None:
    (place,) = decide(fleet(), NOW).actions
    assert isinstance(place, Fulfil)
    assert place.source_secret == ""
    (ensure,) = decide(fleet(known={"fulfilled": NAME}), NOW).actions
    assert isinstance(ensure, EnsureFleetRole)
    assert (ensure.trusted_arn, ensure.name) == (PRINCIPAL, NAME)
    (deliver,) = decide(fold(fleet(known={"fulfilled": NAME}), ensure, None), NOW).actions
    assert isinstance(deliver, DeliverRole)
    assert (deliver.secret, deliver.role_arn) == ("claim-sts-secret", ROLE)
    after = settle(fleet())
    assert after.claim.status.state == "Ready"


def made(**changed: Any) -> ClaimWorld:
    """The role is made but not delivered, since the Secret is another owner's, say; then the claim is edited."""
    known = {"fulfilled": NAME}
    before = fleet(known=known)
    after = fold(before, decide(before, NOW).actions[0], None).known
    return fleet(known=after.model_dump(), **changed)


def test_a_principal_that_is_corrected_before_ready_is_the_one_that_the_role_trusts() -> None:
    other = "arn:aws:iam::999999999999:role/right"
    (ensure,) = decide(made(spec={"fleetManagerConfig": {"trustedARN": other}}), NOW).actions
    assert isinstance(ensure, EnsureFleetRole)
    assert ensure.trusted_arn == other


@pytest.mark.parametrize("changed", [{"fleetManagerConfig": {"trustedARN": ""}}, {"accountPool": "default"}])
def test_a_role_that_was_made_for_a_former_spec_is_not_left_in_the_account(changed: dict[str, Any]) -> None:
    spec = {**changed, "awsCredentialSecret": {"name": "aws", "namespace": "tenant"}}
    waiting = decide(made(spec=spec), NOW)
    assert (waiting.actions, waiting.waits_for) == ((), ("a corrected spec",))
    ends = made(spec=spec, of={"meta": {"deletionTimestamp": ago(minutes=1)}})
    assert activities(decide(ends, NOW)) == ["aws.delete_fleet_role"]


def test_an_account_that_was_a_fleet_managers_gets_no_key_while_it_is_cleaned() -> None:
    spec = {"accountPool": "default", "awsCredentialSecret": {"name": "aws", "namespace": "tenant"}}
    of = {"meta": {"deletionTimestamp": ago(minutes=1)}}
    rotated: list[object] = []
    settle(made(spec=spec, of=of, account={"iamUserSecret": ""}), answers={"aws.rotate_keys": rotated.append})
    assert rotated == []


def test_a_paused_account_gets_no_role_and_keeps_the_one_it_has() -> None:
    meta = {"annotations": {PAUSED: "true"}}
    for world in (fleet(known={"fulfilled": NAME}), fleet(of={"meta": {"deletionTimestamp": timestamp(NOW)}})):
        assert world.account is not None
        held = world.account.model_copy(update={"metadata": world.account.metadata.model_copy(update=meta)})
        assert decide(world.model_copy(update={"account": held}), NOW).actions == ()


def test_with_the_feature_off_the_claim_is_ready_without_a_secret() -> None:
    seen: list[str] = []

    def placed(action: Any) -> Any:
        from domain.accounts.actions.handover import Fulfilled

        seen.append(action.source_secret)
        return Fulfilled(account_ou="ou-1", support_role_arn=action.support_role_arn)

    after = settle(fleet(feature=False), answers={"accounts.fulfil": placed})
    assert (after.claim.status.state, seen) == ("Ready", [""])


@pytest.mark.parametrize("named", ["", "default"])
def test_of_the_default_pool_it_is_a_claim_like_any_other(named: str) -> None:
    spec = {"accountPool": named, "awsCredentialSecret": {"name": "aws", "namespace": "tenant"}}
    (fulfil,) = decide(fleet(spec=spec), NOW).actions
    assert isinstance(fulfil, Fulfil)
    assert fulfil.source_secret == f"{NAME}-secret"
    assert "aws.ensure_fleet_role" not in activities(decide(fleet(spec=spec, known={"fulfilled": NAME}), NOW))


def test_the_pool_that_it_names_serves_it() -> None:
    of = fleet(spec={"accountLink": ""}).claim
    assert waits(of, pool("fm"), config(**ON))
    assert not waits(of, pool("pool"), config(**ON))


def test_the_role_goes_before_anything_else_of_a_release() -> None:
    """An outsider who may come in while the account is being cleaned could leave things behind for the next tenant."""
    of = {"meta": {"deletionTimestamp": ago(minutes=1)}, "status": {"state": "Ready", "conditions": []}}
    start = fleet(of=of, account={"iamUserSecret": ""})
    assert activities(decide(start, NOW)) == ["aws.delete_fleet_role"]
    released: list[ReleaseAccount] = []
    settle(start, answers={"accounts.release": released.append})
    assert [(each.secret_name, each.how) for each in released] == [("claim-sts-secret", Release.FREE)]


@pytest.mark.parametrize("changed", [{"fleetManagerConfig": {"trustedARN": ""}}, {"accountPool": ""}])
def test_the_role_goes_although_the_claim_names_no_principal_by_now(changed: dict[str, Any]) -> None:
    of = {"meta": {"deletionTimestamp": ago(minutes=1)}, "status": {"state": "Ready", "conditions": []}}
    start = fleet(spec=changed, of=of, account={"iamUserSecret": ""})
    assert activities(decide(start, NOW)) == ["aws.delete_fleet_role"]


@pytest.mark.parametrize("end", ["finished", "stopped", "failed"])
def test_a_role_that_is_made_while_its_claim_is_deleted_is_deleted_again(end: str) -> None:
    state, step = State(fleet(known={"fulfilled": NAME}), dirty=False).step(decide, NOW)
    (ensure,) = step.start
    ends = fleet(of={"meta": {"deletionTimestamp": ago(minutes=1)}})
    state, step = state.observing(NOW).observed(ends).step(decide, NOW)
    (delete,) = step.start
    state = state.finished(delete.slot, None)
    if end == "failed":
        state = state.failed(ensure.slot, refusal(ErrorType.UNAVAILABLE))
    else:
        state = state.stopped(ensure.slot) if end == "stopped" else state.finished(ensure.slot, None)
    _, step = state.step(decide, NOW)
    assert [action.activity for action in step.start] == ["aws.delete_fleet_role"]


def test_a_role_that_cannot_be_deleted_keeps_the_account_from_everybody() -> None:
    of = {"meta": {"deletionTimestamp": ago(minutes=1)}, "status": {"state": "Ready", "conditions": []}}
    denied = {"aws.delete_fleet_role": refusal(ErrorType.DENIED, attempts=3)}
    decision = decide(fleet(of=of, refusals=denied), NOW)
    assert activities(decision) == ["aws.delete_fleet_role", "accounts.release"]
    assert isinstance(decision.actions[1], ReleaseAccount)
    assert decision.actions[1].how is Release.FAILED


@pytest.mark.parametrize("partition", ["aws", "aws-us-gov"])
def test_the_policy_is_the_replaced_operators(partition: str) -> None:
    first, second = policy(AWS_ID, partition)["Statement"]  # type: ignore[misc]
    assert (first["Sid"], second["Sid"]) == ("VisualEditor0", "VisualEditor1")
    assert first["Resource"] == [
        f"arn:{partition}:iam::{AWS_ID}:{kind}/*" for kind in ("instance-profile", "role", "oidc-provider", "policy")
    ]
    services = [action.split(":")[0] for action in first["Action"]]
    assert (services.count("iam"), services.count("secretsmanager"), services.count("sts")) == (29, 7, 1)
    assert len(set(first["Action"])) == 37
    assert (second["Action"], second["Resource"]) == ("s3:*", "*")
