"""An AccountClaim from the wish to the Secret and back to a clean account: binding, faults of the spec, release."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from account_objects import (
    AWS_ID,
    CONFIG,
    NAME,
    NOW,
    activities,
    ago,
    claim,
    claim_world,
    condition,
    config,
    fold,
    free,
    present,
    ready_account,
    refusal,
    settle,
    status_of,
    written_condition,
)

from domain.accounts.actions.account_cleanup import CleanGlobal, CleanRegion
from domain.accounts.actions.handover import Fulfil, Release, ReleaseAccount
from domain.accounts.actions.iam_identities import RotateKeys
from domain.accounts.claim_lifecycle import decide
from domain.accounts.claim_validation import spec_fault
from domain.accounts.constants import FAKE_ANNOTATION, FINALIZER, OPERATOR_NAMESPACE, PAUSE_ANNOTATION
from domain.accounts.observed import ClaimWorld
from domain.accounts.resources import AccountClaim
from domain.control_annotations import PAUSED
from domain.decision import Outcome
from domain.refusal import ErrorType
from domain.resource import timestamp
from domain.writes import Patch

PENDING = {
    "state": "Pending",
    "conditions": [condition("Unclaimed", reason="AccountClaimed", message="Attempting to claim account")],
}
READY = {**PENDING, "state": "Ready"}
HELD = ready_account(
    spec={
        "claimLink": "claim",
        "claimLinkNamespace": "tenant",
        "legalEntity": {"id": "entity-1", "name": "Entity One"},
    },
    status={"claimed": True},
)
ROLE = f"arn:aws:iam::{AWS_ID}:role/ManagedOpenShift-Support-bcd456"
DELETED = {"deletionTimestamp": timestamp(NOW)}


def bound(**fields: Any) -> AccountClaim:
    """A claim that the pool has linked to its account."""
    spec = {"accountLink": NAME, **fields.pop("spec", {})}
    return claim(spec=spec, status=fields.pop("status", PENDING), **fields)


def bound_world(of: AccountClaim | None = None, **fields: Any) -> ClaimWorld:
    return claim_world(of or bound(), account=fields.pop("account", HELD), **fields)


# --- from the wish to an account ---


def test_the_finalizer_comes_first_and_keeps_those_of_others() -> None:
    bare = claim(meta={"finalizers": ["fleet-manager"]})
    (patch,) = decide(claim_world(bare), NOW).actions
    assert isinstance(patch, Patch)
    assert patch.patch["metadata"] == {"finalizers": ["fleet-manager", FINALIZER]}
    assert patch.resource_version == "3"


@pytest.mark.parametrize("sort", [{}, {"byoc": True}, {FAKE_ANNOTATION: "true"}], ids=["pool", "BYOC", "fake"])
def test_the_first_write_leaves_the_fields_that_go_structs_always_show(sort: dict[str, Any]) -> None:
    """In that write and in no other: a claim that the replaced operator has served is not written."""
    annotations, spec = (sort, {}) if FAKE_ANNOTATION in sort else ({}, sort)
    bare = {"finalizers": [], "annotations": annotations}
    (patch,) = decide(claim_world(claim(meta=bare, spec=spec)), NOW).actions
    assert isinstance(patch, Patch)
    empty = {"byocSecretRef": {"name": "", "namespace": ""}, "fleetManagerConfig": {"trustedARN": ""}}
    spec_of = claim(spec=spec).spec.model_dump(mode="json")
    required = {name: spec_of[name] for name in ("legalEntity", "awsCredentialSecret", "aws", "accountLink")}
    assert (patch.patch["spec"], patch.resource_version) == ({**required, **empty}, "3")
    fields = {"byocSecretRef": {"name": "keys", "namespace": "tenant"}, "fleetManagerConfig": {"trustedARN": "arn:x"}}
    (patch,) = decide(claim_world(claim(meta=bare, spec={**spec, **fields})), NOW).actions
    assert isinstance(patch, Patch)
    assert patch.patch["spec"] == {**required, **fields}


@pytest.mark.parametrize(
    ("seconds", "waits"), [(0, True), (-1, True), (-2, False), (3600, False)], ids=["new", "1 s", "2 s", "clock ahead"]
)
def test_a_new_claim_leaves_its_pool_two_seconds_by_whatever_clock(seconds: int, waits: bool) -> None:
    born = {"creationTimestamp": timestamp(NOW + timedelta(seconds=seconds))}
    assert (decide(claim_world(claim(meta=born)), NOW).deadline is not None) is waits


def test_a_new_claim_becomes_pending_with_upstreams_condition() -> None:
    decision = decide(claim_world(), NOW)
    assert status_of(decision) == {
        "state": "Pending",
        "conditions": [
            {
                "type": "Unclaimed",
                "status": "True",
                "reason": "AccountClaimed",
                "message": "Attempting to claim account",
                "lastProbeTime": timestamp(NOW),
                "lastTransitionTime": timestamp(NOW),
            }
        ],
    }


def test_a_pending_claim_waits_for_its_pool() -> None:
    decision = decide(claim_world(claim(status=PENDING), unserved="3 held by other claims"), NOW)
    assert (decision.outcome, decision.actions) == (Outcome.WAITING, ())
    assert decision.waits_for == ("AccountPool/pool",)
    assert decision.why == "can't find a suitable account to claim: 3 held by other claims"


def test_a_claim_names_its_pool_or_means_the_default_one() -> None:
    named = claim(spec={"accountPool": "fm-accountpool"}, status=PENDING)
    assert decide(claim_world(named), NOW).waits_for == ("AccountPool/fm-accountpool",)
    missing = decide(claim_world(named, pool_exists=False), NOW)
    assert missing.why == "AccountPool fm-accountpool does not exist"


@pytest.mark.parametrize(
    ("accountpool", "says"),
    [
        (None, "marks no pool as default"),
        ("pool: {}", "marks no pool as default"),
        ("pool: [", "cannot be read"),
    ],
)
def test_a_claim_without_any_pool_says_what_the_configmap_lacks(accountpool: str | None, says: str) -> None:
    decision = decide(claim_world(claim(status=PENDING), config=config(accountpool=accountpool)), NOW)
    assert (decision.outcome, activities(decision), decision.waits_for) == (
        Outcome.WAITING,
        ["kube.patch"],  # its condition
        ("ConfigMap",),
    )
    assert says in decision.why


def test_a_bound_claim_is_handed_its_account_in_one_step() -> None:
    (fulfil,) = decide(bound_world(), NOW).actions
    assert isinstance(fulfil, Fulfil)
    assert (fulfil.account, fulfil.account_id, fulfil.source_secret) == (NAME, AWS_ID, f"{NAME}-secret")
    assert (fulfil.root, fulfil.base, fulfil.legal_entity.id) == ("r-root", "ou-base", "entity-1")
    assert fulfil.secret_name == "aws"
    assert fulfil.support_role_arn == ROLE
    assert not fulfil.placed


@pytest.mark.parametrize("own", [{"manualSTSMode": True}, {}])
@pytest.mark.parametrize("text", ["", "arn:aws:iam::210987654321:role/support"])
def test_a_pools_claim_with_a_role_of_its_own_keeps_the_support_role_that_it_says(
    own: dict[str, Any], text: str
) -> None:
    role = {**own, "stsRoleARN": f"arn:aws:iam::{AWS_ID}:role/own", "supportRoleARN": text}
    (fulfil,) = decide(bound_world(bound(spec=role)), NOW).actions
    assert isinstance(fulfil, Fulfil)
    assert fulfil.support_role_arn == text
    (again,) = decide(bound_world(bound(spec={**role, "accountOU": "ou-foreign"})), NOW).actions
    assert isinstance(again, Fulfil)
    assert not again.placed, "any writer of the OU"


def test_a_claim_is_ready_only_after_its_secret_and_says_by_which_account() -> None:
    after = settle(bound_world())
    assert after.claim.status.state == "Ready"
    claimed = present(after.claim.status.conditions, "Claimed")
    assert (claimed.reason, claimed.message) == ("AccountClaimed", f"Account claim fulfilled by {NAME}")
    assert present(after.claim.status.conditions, "Unclaimed").status == "True"
    assert (after.claim.spec.account_ou, after.claim.spec.support_role_arn) == ("ou-1", ROLE)
    assert decide(after, NOW).outcome is Outcome.SETTLED


def test_a_second_look_at_a_condition_moves_no_time() -> None:
    again = claim(status={"state": "", "conditions": [condition("Unclaimed", entered=ago(days=1))]})
    written = written_condition(decide(claim_world(again), NOW), "Unclaimed")
    assert written["lastProbeTime"] == written["lastTransitionTime"] == ago(days=1)


@pytest.mark.parametrize("ou", ["", "ROOT"])
def test_a_ready_claim_whose_account_was_not_moved_is_handed_over_again(ou: str) -> None:
    unmoved = bound(spec={"accountOU": ou, "supportRoleARN": ROLE}, status=READY)
    (fulfil,) = decide(bound_world(unmoved), NOW).actions
    assert isinstance(fulfil, Fulfil)
    assert not fulfil.placed


def test_a_ready_claim_with_account_and_ou_is_settled_whatever_else_it_says() -> None:
    faulty = bound(spec={"accountOU": "ou-1", "awsCredentialSecret": {"name": "", "namespace": "else"}}, status=READY)
    decision = decide(claim_world(faulty, account=None), NOW)
    assert (decision.outcome, decision.actions) == (Outcome.SETTLED, ())


def test_a_claim_that_has_its_ou_and_role_already_is_only_given_its_secret() -> None:
    (fulfil,) = decide(bound_world(bound(spec={"accountOU": "ou-1", "supportRoleARN": ROLE})), NOW).actions
    assert isinstance(fulfil, Fulfil)
    assert fulfil.placed


def test_a_claim_given_another_account_is_not_taken_for_placed() -> None:
    """Its OU is left from the account before."""
    other = "arn:aws:iam::210987654321:role/ManagedOpenShift-Support-zzz999"
    (fulfil,) = decide(bound_world(bound(spec={"accountOU": "ou-1", "supportRoleARN": other})), NOW).actions
    assert isinstance(fulfil, Fulfil)
    assert not fulfil.placed


def test_a_claim_given_another_account_is_handed_that_one() -> None:
    first = settle(bound_world())
    second = ready_account(
        "osd-creds-mgmt-zzz999", spec={**HELD.spec.model_dump(), "awsAccountID": "210987654321", "iamUserSecret": "s"}
    )
    moved = first.claim.model_copy(
        update={
            "spec": first.claim.spec.model_copy(update={"account_link": second.metadata.name}),
            "status": first.claim.status.model_copy(update={"state": ""}),
        }
    )
    seen = claim_world(moved, account=second).recall(first)
    assert activities(decide(seen, NOW)) == ["accounts.fulfil"]


def test_a_claim_blanked_by_hand_gets_its_secret_again() -> None:
    ready = settle(bound_world())
    blank = ready.claim.model_copy(update={"status": AccountClaim().status})
    seen = claim_world(blank, account=HELD).recall(ready)
    assert activities(decide(seen, NOW)) == ["accounts.fulfil"]


def new_claim(age: timedelta) -> AccountClaim:
    claim = AccountClaim()
    spec = bound_world().claim.spec.model_copy(update={"account_link": "", "account_ou": ""})
    metadata = bound_world().claim.metadata.model_copy(update={"creation_timestamp": NOW - age, "finalizers": ()})
    return claim.model_copy(update={"metadata": metadata, "spec": spec})


def test_a_new_claim_is_the_pools_for_two_seconds_and_then_says_pending() -> None:
    fresh = decide(claim_world(new_claim(timedelta(seconds=1)), account=None), NOW)
    assert (fresh.actions, fresh.deadline) == ((), NOW + timedelta(seconds=1))
    assert activities(decide(claim_world(new_claim(timedelta(seconds=2)), account=None), NOW)) == ["kube.patch"]


def test_a_claim_that_its_pool_has_just_bound_is_handed_over_by_the_pool_alone() -> None:
    bound = bound_world()
    fresh = bound.claim.metadata.model_copy(update={"creation_timestamp": NOW})
    blank = bound.claim.model_copy(update={"metadata": fresh, "status": AccountClaim().status})
    seen = bound.model_copy(update={"claim": blank})
    assert decide(seen, NOW).actions == ()
    assert activities(decide(seen.model_copy(update={"by_pool": True}), NOW)) == ["accounts.fulfil"]


def test_a_claim_served_at_once_shows_both_conditions() -> None:
    bound = bound_world()
    blank = bound.claim.model_copy(update={"status": AccountClaim().status})
    ready = settle(bound.model_copy(update={"claim": blank, "by_pool": True}))
    assert [condition.type for condition in ready.claim.status.conditions] == ["Unclaimed", "Claimed"]


# --- what is not its own ---


@pytest.mark.parametrize(
    "spec",
    [
        {"claimLink": "other", "claimLinkNamespace": "tenant"},
        {"claimLink": "claim", "claimLinkNamespace": "elsewhere"},
        {"claimLink": "", "claimLinkNamespace": ""},
    ],
)
def test_nothing_is_copied_from_an_account_that_does_not_name_the_claim(spec: dict[str, str]) -> None:
    decision = decide(bound_world(account=ready_account(spec=spec)), NOW)
    assert (decision.outcome, decision.actions) == (Outcome.WAITING, ())
    assert "does not name this claim" in decision.why


@pytest.mark.parametrize(
    "fields",
    [
        {"account": None},
        {"account": ready_account(spec={"claimLink": "other", "claimLinkNamespace": "x"})},
        {"protected": (AWS_ID,)},
        {"config": config(root=None)},
    ],
    ids=["no account", "another's", "protected", "no root"],
)
def test_a_new_claim_whose_link_gives_it_nothing_says_pending(fields: dict[str, Any]) -> None:
    """W14, and the first line of the replaced operator's passes: a tenant sees that the claim was heard."""
    new = bound_world(bound(status={}), **fields)
    unclaimed = written_condition(decide(new, NOW), "Unclaimed")
    assert status_of(decide(new, NOW))["state"] == "Pending"
    assert (unclaimed["status"], unclaimed["reason"]) == ("True", "AccountClaimed")
    assert unclaimed["message"] == "Attempting to claim account"
    pending = new.model_copy(update={"claim": bound()})
    assert "accounts.fulfil" not in activities(decide(pending, NOW))
    assert activities(decide(bound_world(bound(status={})), NOW)) == ["accounts.fulfil"], "no write before"


def test_a_link_to_an_account_that_does_not_exist_waits_for_it() -> None:
    decision = decide(bound_world(account=None), NOW)
    assert (decision.outcome, decision.waits_for) == (Outcome.WAITING, (f"Account/{NAME}",))


@pytest.mark.parametrize("fields", [{"protected": (AWS_ID,)}, {"config": config(payer_account_ids=AWS_ID)}])
def test_a_protected_account_is_neither_handed_over_nor_cleaned(fields: dict[str, object]) -> None:
    assert decide(bound_world(**fields), NOW).actions == ()
    assert decide(bound_world(bound(meta=DELETED), **fields), NOW).actions == ()


@pytest.mark.parametrize("known", [{}, {"fulfilled": NAME}, {"keys_rotated": True}, {"closed": AWS_ID}])
@pytest.mark.parametrize("meta", [{}, DELETED])
@pytest.mark.parametrize("annotations", [{}, {FAKE_ANNOTATION: "true"}])
def test_a_paused_account_is_neither_handed_over_nor_cleaned_until_it_is_resumed(
    known: dict[str, Any], meta: dict[str, str], annotations: dict[str, str]
) -> None:
    """A person who puts an account on hold means the account, whatever becomes of its claim."""
    world = bound_world(bound(meta={**meta, "annotations": annotations}), known=known)
    paused = HELD.metadata.model_copy(update={"annotations": {PAUSED: "true"}})
    held = world.model_copy(update={"account": HELD.model_copy(update={"metadata": paused})})
    decision = decide(held, NOW)
    assert (decision.outcome, decision.actions) == (Outcome.WAITING, ())
    assert (decision.why, decision.waits_for) == (f"Account {NAME} is paused", (f"Account/{NAME}",))
    assert decide(world, NOW).actions


def test_the_replaced_operators_own_pause_of_an_account_lets_its_release_proceed() -> None:
    paused = HELD.metadata.model_copy(update={"annotations": {PAUSE_ANNOTATION: "true"}})
    going = bound_world(bound(meta=DELETED), account=HELD.model_copy(update={"metadata": paused}))
    assert activities(decide(going, NOW)) == ["aws.rotate_keys"]


@pytest.mark.parametrize("key", ["root", "base"])
def test_a_missing_key_stops_the_hand_over_only(key: str) -> None:
    decision = decide(bound_world(config=config(**{key: None})), NOW)
    assert (decision.outcome, activities(decision), decision.waits_for) == (
        Outcome.WAITING,
        ["kube.patch"],  # its condition
        ("ConfigMap",),
    )
    assert key in decision.why
    assert activities(decide(bound_world(config=CONFIG), NOW)) == ["accounts.fulfil"]


def test_a_tenant_cannot_skip_the_cleaning_by_annotating_its_own_claim() -> None:
    annotated = {"annotations": {"perdure.dev/let-go": "I want it back"}}
    with_release, without = (decide(bound_world(bound(meta={**DELETED, **more})), NOW) for more in (annotated, {}))
    assert with_release == without
    assert not any(isinstance(action, ReleaseAccount) for action in with_release.actions)


def test_a_person_can_release_an_account_that_cannot_be_cleaned_from_all_use() -> None:
    """W18, issue 110 of the replaced operator: a claim that is stuck for ever, and its namespace with it."""
    annotated = {"annotations": {"perdure.dev/let-go": "the account is closed"}}
    start = bound_world(bound(meta=DELETED))
    assert start.account is not None
    meta = start.account.metadata.model_copy(update=annotated)
    start = start.model_copy(update={"account": start.account.model_copy(update={"metadata": meta})})
    (release,) = decide(start, NOW).actions
    assert isinstance(release, ReleaseAccount)
    assert release.how is Release.UNCLEANED
    assert not settle(start).exists


# --- faults of the spec ---

FAULTS = [
    ({"awsCredentialSecret": {"name": "aws", "namespace": "elsewhere"}}, "AWSSecretRefNamespaceMismatch"),
    ({"awsCredentialSecret": {"name": "", "namespace": "tenant"}}, "AWSSecretRefMissing"),
    ({"legalEntity": {"id": "", "name": "x"}}, "LegalEntityIDMissing"),
    ({"legalEntity": {"id": "  ", "name": "x"}}, "LegalEntityIDMissing"),
    ({"legalEntity": {"id": "x" * 129, "name": "x"}}, "LegalEntityIDTooLong"),
]


@pytest.mark.parametrize(("spec", "reason"), FAULTS)
def test_a_faulty_spec_is_an_error_with_its_reason(spec: dict[str, Any], reason: str) -> None:
    decision = decide(claim_world(claim(spec=spec, status=PENDING)), NOW)
    assert status_of(decision)["state"] == "Error"
    invalid = written_condition(decision, "InvalidAccountClaim")
    assert (invalid["reason"], invalid["message"]) == (reason, "Invalid AccountClaim")
    after = settle(claim_world(claim(spec=spec, status=PENDING)))
    assert decide(after, NOW).outcome is Outcome.WAITING


@pytest.mark.parametrize("name", ["aws-account-operator-credentials", "osd-creds-mgmt-abc123-secret"])
@pytest.mark.parametrize("sort", [{}, {"byoc": True, "byocAWSAccountID": AWS_ID}])
def test_the_operators_own_secrets_are_no_claims(name: str, sort: dict[str, Any]) -> None:
    here = {"name": name, "namespace": OPERATOR_NAMESPACE}
    spec = {**sort, "byocSecretRef": {**here, "name": "keys"}, "awsCredentialSecret": here}
    assert (spec_fault(claim(namespace=OPERATOR_NAMESPACE, spec=spec)) or ("",))[0] == "AWSSecretRefReserved"
    tenants = {"name": name, "namespace": "tenant"}
    assert spec_fault(claim(spec={**sort, "byocSecretRef": tenants, "awsCredentialSecret": tenants})) is None


def test_an_empty_secret_namespace_means_the_claims_own() -> None:
    here = bound(spec={"awsCredentialSecret": {"name": "aws", "namespace": ""}})
    (fulfil,) = decide(bound_world(here), NOW).actions
    assert isinstance(fulfil, Fulfil)
    assert (fulfil.secret_name, fulfil.claim.namespace) == ("aws", "tenant")


def test_each_present_fault_is_named_in_turn() -> None:
    first = settle(claim_world(claim(spec=FAULTS[0][0])))
    other = first.claim.model_copy(update={"spec": claim(spec=FAULTS[2][0]).spec})
    after = settle(first.model_copy(update={"claim": other}))
    assert present(after.claim.status.conditions, "InvalidAccountClaim").reason == "LegalEntityIDMissing"


def test_a_corrected_spec_heals_by_itself() -> None:
    broken = settle(claim_world(claim(spec=FAULTS[0][0])))
    assert broken.claim.status.state == "Error"
    corrected = broken.model_copy(update={"claim": broken.claim.model_copy(update={"spec": claim().spec})})
    after = settle(corrected)
    assert after.claim.status.state == "Pending"
    assert present(after.claim.status.conditions, "InvalidAccountClaim").status == "True"
    assert present(after.claim.status.conditions, "Unclaimed").message == "Attempting to claim account"


def test_an_error_set_by_hand_on_a_sound_claim_is_left() -> None:
    assert settle(claim_world(claim(status={"state": "Error", "conditions": []}))).claim.status.state == "Pending"


def test_a_refused_hand_over_is_tried_again() -> None:
    start = bound_world()
    after = fold(start, decide(start, NOW).actions[0], refusal(ErrorType.DENIED))
    assert activities(decide(after, NOW)) == ["accounts.fulfil"]


def test_a_retry_is_noted_once() -> None:
    user_claim = claim(meta={"annotations": {"perdure.dev/retry": "t"}}, status=PENDING)
    after = settle(claim_world(user_claim))
    assert after.claim.metadata.annotations["perdure.dev/retried"] == "t"
    assert decide(after, NOW).actions == ()


# --- release ---


def releasing(**fields: Any) -> ClaimWorld:
    return bound_world(bound(meta={**DELETED, **fields.pop("meta", {})}, status=READY, **fields))


def test_a_release_kills_the_key_first_then_cleans_then_frees_the_account() -> None:
    steps: list[list[str]] = []
    current = releasing()
    from account_objects import ANSWERS

    while current.exists:
        decision = decide(current, NOW)
        assert decision.phase == "Deleting"
        steps.append(activities(decision))
        for action in decision.actions:
            current = fold(current, action, ANSWERS[action.activity](action))
    assert steps == [
        ["aws.rotate_keys"],
        ["aws.clean_region", "aws.clean_global"],
        ["accounts.release"],
        ["kube.patch"],
    ]


def test_a_release_names_the_account_the_key_and_the_secret() -> None:
    (rotate,) = decide(releasing(), NOW).actions
    assert isinstance(rotate, RotateKeys)
    assert (rotate.account_id, rotate.iam_user_id, rotate.secret) == (AWS_ID, "bcd456", f"{NAME}-secret")
    cleaned = releasing().learn(keys_rotated=True, cleaned={"us-east-1": "", "global": ""})
    (release,) = decide(cleaned, NOW).actions
    assert isinstance(release, ReleaseAccount)
    assert (release.account, release.how) == (NAME, Release.FREE)
    assert release.secret_name == "aws"
    assert release.legal_entity.id == "entity-1"


def test_the_key_is_rotated_although_a_person_blanked_the_name_of_its_secret() -> None:
    going = releasing()
    blanked = HELD.model_copy(update={"spec": HELD.spec.model_copy(update={"iam_user_secret": ""})})
    requested: list[RotateKeys] = []
    settle(going.model_copy(update={"account": blanked}), answers={"aws.rotate_keys": requested.append})
    assert [rotate.secret for rotate in requested] == [f"{NAME}-secret"]


@pytest.mark.parametrize(
    ("regions", "cleaned"),
    [
        ([{"name": "eu-west-1"}, {"name": "us-west-2"}], ["eu-west-1", "us-west-2"]),
        ([{"name": "eu-west-1"}, {"name": "eu-west-1"}], ["eu-west-1"]),
        ([], ["us-east-1"]),
        ([{"name": ""}], ["us-east-1"]),
    ],
)
def test_every_region_of_the_claim_is_cleaned_and_an_empty_list_crashes_nothing(
    regions: list[dict[str, str]], cleaned: list[str]
) -> None:
    going = releasing(spec={"aws": {"regions": regions}}).learn(keys_rotated=True)
    found = decide(going, NOW).actions
    assert [a.region for a in found if isinstance(a, CleanRegion)] == cleaned
    assert len([a for a in found if isinstance(a, CleanGlobal)]) == 1
    assert len({a.slot for a in found}) == len(found)


def test_in_govcloud_a_claim_without_regions_is_cleaned_in_its_own_partition() -> None:
    start = releasing(spec={"aws": {"regions": []}}).learn(keys_rotated=True)
    start = start.model_copy(update={"config": config(fedramp="true")})
    requested = {(type(each).__name__, each.region, each.partition) for each in decide(start, NOW).actions}  # type: ignore[attr-defined]
    assert requested == {("CleanRegion", "us-gov-east-1", "aws-us-gov"), ("CleanGlobal", "us-gov-east-1", "aws-us-gov")}


def test_rotation_can_be_switched_off() -> None:
    stored = releasing().model_copy(update={"rotate_keys": False})
    assert activities(decide(stored, NOW)) == ["aws.clean_region", "aws.clean_global"]


@pytest.mark.parametrize("finalizers", [[FINALIZER, "fleet-manager"], ["fleet-manager", FINALIZER]])
def test_nothing_is_released_while_another_finalizer_remains(finalizers: list[str]) -> None:
    decision = decide(releasing(meta={"finalizers": finalizers}), NOW)
    assert (decision.outcome, decision.actions) == (Outcome.WAITING, ())
    assert "fleet-manager" in decision.why


def test_a_claim_without_our_finalizer_is_left_to_the_others() -> None:
    decision = decide(releasing(meta={"finalizers": ["fleet-manager"]}), NOW)
    assert (decision.outcome, decision.actions) == (Outcome.WAITING, ())


def test_a_claim_that_never_got_an_account_goes_at_once() -> None:
    going = claim_world(claim(meta=DELETED, status=PENDING))
    assert activities(decide(going, NOW)) == ["kube.patch"]
    assert not settle(going).exists


def test_a_claim_whose_link_was_never_written_releases_the_account_that_names_it() -> None:
    going = claim_world(claim(meta=DELETED, status=PENDING), account=HELD)
    assert activities(decide(going, NOW)) == ["aws.rotate_keys"]


@pytest.mark.parametrize("account", [None, ready_account(spec={"claimLink": "other", "claimLinkNamespace": "x"})])
def test_a_claim_that_holds_nothing_touches_no_account(account: Any) -> None:
    going = bound_world(bound(meta=DELETED), account=account)
    assert activities(decide(going, NOW)) == ["kube.patch"]


def test_an_invalid_claim_can_always_be_deleted() -> None:
    for spec, _ in FAULTS:
        assert not settle(claim_world(claim(meta=DELETED, spec=spec))).exists


def refused(world: ClaimWorld, activity: str, times: int) -> ClaimWorld:
    for _ in range(times):
        action = next(a for a in decide(world, NOW).actions if a.activity == activity)
        world = fold(world, action, refusal(ErrorType.CONFLICT, "volume in use", code="VolumeInUse"))
    return world


def test_a_cleanup_that_fails_is_shown_failed_after_three_refusals_and_goes_on() -> None:
    going = releasing().learn(keys_rotated=True)
    twice = refused(going, "aws.clean_region", 2)
    assert activities(decide(twice, NOW)) == ["aws.clean_region", "aws.clean_global"]
    thrice = refused(going, "aws.clean_region", 3)
    decision = decide(thrice, NOW)
    assert activities(decision) == ["aws.clean_region", "aws.clean_global", "accounts.release"]
    marked = decision.actions[-1]
    assert isinstance(marked, ReleaseAccount)
    assert marked.how is Release.FAILED
    assert decision.why == "volume in use"
    shown = fold(thrice, marked, None)
    assert shown.account is not None
    assert shown.account.failed
    assert activities(decide(shown, NOW)) == ["aws.clean_region", "aws.clean_global"]


def test_a_cleanup_that_succeeds_at_last_frees_the_failed_account() -> None:
    stuck = refused(releasing().learn(keys_rotated=True), "aws.clean_region", 3)
    marked = fold(stuck, decide(stuck, NOW).actions[-1], None)
    assert not settle(marked).exists


def test_a_rotation_that_is_refused_keeps_everything_else_from_beginning() -> None:
    stuck = refused(releasing(), "aws.rotate_keys", 3)
    assert activities(decide(stuck, NOW)) == ["aws.rotate_keys", "accounts.release"]


def test_bugs_never_mark_an_account_failed() -> None:
    going = releasing().learn(keys_rotated=True)
    for _ in range(5):
        action = decide(going, NOW).actions[0]
        going = fold(going, action, refusal(ErrorType.BUG))
    assert "accounts.release" not in activities(decide(going, NOW))


def test_the_substitute_for_an_account_in_development_mode_is_never_cleaned() -> None:
    """Every Account of that mode has the same one; in an emulator it may be the payer's."""
    going = releasing().model_copy(update={"dev_mode": True})
    rotated = going.learn(keys_rotated=True)
    assert activities(decide(going, NOW)) == ["aws.rotate_keys"]
    assert activities(decide(rotated, NOW)) == ["accounts.release"]
    closing = rotated.model_copy(update={"config": config(**CLOSES)})
    assert activities(decide(closing, NOW)) == ["accounts.release"]
    assert HELD.spec.aws_account_id == AWS_ID
    real = HELD.model_copy(update={"spec": HELD.spec.model_copy(update={"aws_account_id": "210987654321"})})
    assert "aws.clean_global" in activities(decide(rotated.model_copy(update={"account": real}), NOW))


CLOSES = {"feature.close_on_release": "true", "close_account.dry_run": "false"}


def test_a_release_writes_what_upstream_writes() -> None:
    after = free(HELD)
    assert (after.status.state, after.status.claimed, after.status.reused) == ("Ready", False, True)
    assert (after.status.rotate_credentials, after.status.rotate_console_credentials) == (True, True)
    assert (after.status.support_case_id, after.status.regional_service_quotas) == ("", {})
    reused = present(after.status.conditions, "Reused")
    assert (reused.status, reused.reason, reused.message) == ("True", "Ready", "Account Reuse - Ready")
    assert after.spec.legal_entity.id == "entity-1"
    failed = free(HELD, failed=True)
    assert (failed.status.state, failed.status.reused) == ("Failed", True)
    mark = present(failed.status.conditions, "Failed")
    assert (mark.reason, mark.message) == ("Failed", "Account Reuse - Failed")


def test_a_claim_that_is_gone_ends_its_workflow() -> None:
    assert decide(claim_world().model_copy(update={"exists": False}), NOW).gone
