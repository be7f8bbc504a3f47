"""What changes of the account area's objects wake."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, cast

import pytest
from edited_documents import edited

from domain.accounts import ACCOUNT, ACCOUNT_CLAIM, ACCOUNT_POOL
from domain.accounts.constants import FINALIZER
from domain.identity import Kind
from engine.kube.json import JsonObject
from engine.settings import Settings
from starters.watch.accounts import WATCHED
from starters.watch.projection import Projection
from starters.watch.projection_index import Index
from starters.watch.watched_kinds import Watched, watched_under

NAMESPACE = "aws-account-operator"
VALIDATION = "AccountValidation/aws"
BY_NAME = {entry.name: entry for entry in WATCHED}

Obj = dict[str, Any]


def obj(name: str, namespace: str = NAMESPACE, **fields: Any) -> Obj:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": "1", "generation": 1}
    return {"metadata": metadata, "spec": {}, "status": {}, **fields}


def account(**status: Any) -> Obj:
    spec = {"accountPool": "pool", "awsAccountID": "1", "claimLink": "", "legalEntity": {"id": "", "name": ""}}
    return edited(obj("account", spec=spec, status=status), "metadata.finalizers", [FINALIZER])


def claim(**spec: Any) -> Obj:
    each = obj("claim", "tenant", spec={"accountPool": "pool", "accountLink": "", **spec})
    return edited(each, "metadata.finalizers", [FINALIZER])


class World:
    """An index, and the wakes of a change in it."""

    def __init__(self, *known: tuple[Kind, Obj]) -> None:
        self.index = Index()
        for kind, each in known:
            self.put(BY_NAME[kind.name], each)

    def put(self, entry: Watched, each: Obj) -> Projection:
        projection = entry.project("", each)
        self.index.of(entry.name)[projection.name] = projection
        return projection

    def wakes(self, kind: str, before: Obj | None, after: Obj | None) -> set[str]:
        """The relatives that the change wakes, as Kind/name."""
        entry = BY_NAME[kind]
        sides = [entry.project("", each) if each else None for each in (before, after)]
        return {f"{key.kind}/{key.name}" for key in entry.relatives(sides[0], sides[1], self.index)}


@pytest.fixture
def world() -> World:
    return World(
        (ACCOUNT_POOL, obj("pool")),
        (ACCOUNT_POOL, obj("other")),
        (ACCOUNT_CLAIM, claim()),
        (ACCOUNT, account(state="Creating")),
    )


def read(kind: Kind, each: Obj) -> Projection:
    return BY_NAME[kind.name].project("", each)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.generation", 2),
        ("metadata.deletionTimestamp", "2026-01-01T00:00:00Z"),
        ("metadata.finalizers", ["somebody-else"]),
        ("metadata.finalizers", []),
        ("metadata.annotations", {"perdure.dev/retry": "1"}),
        ("metadata.annotations", {"perdure.dev/paused": "true"}),
        ("metadata.annotations", {"aws.managed.openshift.com/pause-reconciliation": "true"}),
        ("metadata.annotations", {"aws.managed.openshift.io/close-backoff-seconds": "60"}),
        ("metadata.labels", {"iamUserId": "abcdef"}),
        ("status", {}),
        ("status.state", "Failed"),
        ("status.claimed", True),
        ("status.reused", True),
        ("status.supportCaseID", "case-1"),
        ("status.conditions", [{"type": "Ready"}]),
        ("spec.claimLink", "claim"),
    ],
)
def test_a_field_that_an_account_decides_by_changes_its_fingerprint(path: str, value: Any) -> None:
    before = account(state="Ready")
    assert read(ACCOUNT, before).fingerprint != read(ACCOUNT, edited(before, path, value)).fingerprint


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.resourceVersion", "9"),
        ("metadata.annotations", {"kubectl.kubernetes.io/last-applied-configuration": "{}"}),
        ("metadata.labels", {"team": "x"}),
        ("metadata.managedFields", [{"manager": "kubectl"}]),
        ("status.rotateCredentials", True),
    ],
)
def test_a_field_that_an_account_does_not_decide_by_leaves_its_fingerprint(path: str, value: Any) -> None:
    before = account(state="Ready")
    assert read(ACCOUNT, before).fingerprint == read(ACCOUNT, edited(before, path, value)).fingerprint


@pytest.mark.parametrize(
    ("path", "was", "value"),
    [
        ("status.optInRegions", {"af-south-1": {"status": "MANUAL_ACTION"}}, {"af-south-1": {"status": "TODO"}}),
        ("status.globalServiceQuotas", {"L-1": {"status": "DENIED"}}, {"L-1": {"status": "TODO"}}),
        ("status.regionalServiceQuotas", {"default": {"L-1": {"value": 1}}}, {"default": {"L-1": {"value": 2}}}),
        ("status.conditions", [{"type": "Creating", "lastProbeTime": "2026-05-01T12:00:00Z"}], [{"type": "Creating"}]),
        ("status.conditions", [{"type": "Ready", "status": "False"}], [{"type": "Ready", "status": "True"}]),
    ],
)
def test_a_reset_within_an_accounts_status_changes_its_fingerprint(path: str, was: Any, value: Any) -> None:
    before = edited(account(state="Ready"), path, was)
    assert read(ACCOUNT, before).fingerprint != read(ACCOUNT, edited(before, path, value)).fingerprint
    assert read(ACCOUNT, before).fingerprint == read(ACCOUNT, edited(before, path, deepcopy(was))).fingerprint


@pytest.mark.parametrize("others", [[], ["another-operator"]])
def test_a_claim_without_our_finalizer_is_woken_to_get_it_back(others: list[str]) -> None:
    holds = edited(claim(accountLink="account", accountOU="ou-1"), "status.state", "Ready")
    held, bare = (edited(holds, "metadata.finalizers", [*ours, *others]) for ours in ([FINALIZER], []))
    assert read(ACCOUNT_CLAIM, held).fingerprint != read(ACCOUNT_CLAIM, bare).fingerprint
    assert read(ACCOUNT_CLAIM, held).settled
    assert not read(ACCOUNT_CLAIM, bare).settled


def test_any_writers_binding_is_news_to_the_account() -> None:
    before = account(state="Ready")
    after = edited(edited(before, "spec.claimLink", "claim"), "spec.claimLinkNamespace", "tenant")
    assert read(ACCOUNT, before).handed != read(ACCOUNT, after).handed
    assert read(ACCOUNT_CLAIM, claim()).handed != read(ACCOUNT_CLAIM, claim(accountLink="account")).handed


@pytest.mark.parametrize(
    ("each", "settled"),
    [
        (account(state="Ready"), True),
        (account(state="Ready", claimed=True), False),
        (edited(account(state="Ready"), "spec.claimLink", "claim"), False),
        (edited(account(state="Ready", claimed=True), "spec.claimLink", "claim"), True),
        (edited(account(state="Ready"), "spec.awsAccountID", ""), False),
        (edited(account(state="Ready"), "metadata.finalizers", []), False),
        (edited(account(state="Ready"), "metadata.annotations", {"perdure.dev/retry": "1"}), False),
        (
            edited(
                account(state="Ready"),
                "metadata.annotations",
                {"perdure.dev/retry": "1", "perdure.dev/retried": "1"},
            ),
            True,
        ),
        (edited(account(state="Ready"), "metadata.deletionTimestamp", "2026-01-01T00:00:00Z"), False),
        (account(), False),
        (account(state="PendingVerification"), False),
        (account(state="Failed"), False),
    ],
)
def test_an_account_is_settled_when_ready_and_nothing_is_open(each: Obj, settled: bool) -> None:
    assert read(ACCOUNT, each).settled is settled


@pytest.mark.parametrize(
    ("each", "settled"),
    [
        (edited(claim(accountLink="account", accountOU="ou-1"), "status.state", "Ready"), True),
        (edited(claim(accountLink="account", accountOU="ROOT"), "status.state", "Ready"), False),
        (edited(claim(accountLink="account", accountOU="ou-1"), "status.state", "Pending"), False),
        (edited(claim(), "status.state", "Ready"), False),
        (claim(), False),
    ],
)
def test_a_claim_is_settled_when_it_holds_its_account(each: Obj, settled: bool) -> None:
    assert read(ACCOUNT_CLAIM, each).settled is settled


def test_a_pool_is_never_settled_and_its_status_is_no_input() -> None:
    pool = obj("pool", spec={"poolSize": 3})
    assert not read(ACCOUNT_POOL, pool).settled
    assert read(ACCOUNT_POOL, pool).fingerprint == read(ACCOUNT_POOL, edited(pool, "status", {"x": 1})).fingerprint


def test_an_account_getting_ready_wakes_its_pool(world: World) -> None:
    assert world.wakes("Account", account(state="PendingVerification"), account(state="Ready")) == {
        "AccountPool/pool",
        VALIDATION,
    }


def test_an_account_that_becomes_free_later_than_ready_wakes_its_pool(world: World) -> None:
    free = edited(account(state="Ready", reused=True), "spec.iamUserSecret", "account-secret")
    without_key = edited(free, "spec.iamUserSecret", "")
    uncleaned = edited(free, "metadata.annotations", {"perdure.dev/uncleaned": "closed"})
    for held in (without_key, uncleaned):
        assert "AccountPool/pool" in world.wakes(ACCOUNT.name, held, free)
        assert "AccountPool/pool" in world.wakes(ACCOUNT.name, free, held)
    unready = edited(without_key, "status.state", "Creating")
    assert "AccountPool/pool" not in world.wakes(ACCOUNT.name, unready, edited(unready, "spec.iamUserSecret", "key"))


def test_an_account_of_no_named_pool_wakes_all_pools(world: World) -> None:
    before, after = (edited(account(state=s), "spec.accountPool", "") for s in ("Creating", "InitializingRegions"))
    after = edited(after, "status.claimed", True)
    assert world.wakes("Account", before, after) == {"AccountPool/pool", "AccountPool/other"}


def test_an_account_that_changes_pools_wakes_both(world: World) -> None:
    before = account(state="Ready")
    after = edited(before, "spec.accountPool", "other")
    assert world.wakes("Account", before, after) == {"AccountPool/pool", "AccountPool/other"}


@pytest.mark.parametrize(
    ("path", "value", "looked_at"),
    [
        ("status.claimed", True, True),
        ("spec.legalEntity.id", "entity", True),
        ("status.state", "Failed", True),
        ("status.state", "Creating", False),
        ("status.supportCaseID", "case-1", False),
        ("metadata.labels", {"a": "b"}, False),
    ],
)
def test_an_account_is_validated_when_it_may_belong_in_another_ou(
    world: World, path: str, value: Any, looked_at: bool
) -> None:
    before = account(state="Ready")
    assert (VALIDATION in world.wakes("Account", before, edited(before, path, value))) is looked_at
    assert VALIDATION not in world.wakes("Account", None, before)
    assert VALIDATION not in world.wakes("Account", before, None)


def test_a_progress_that_is_not_counted_wakes_no_lifecycle(world: World) -> None:
    before = account(state="InitializingRegions")
    assert world.wakes("Account", before, edited(before, "status.conditions", [{"type": "x"}])) == set()
    assert world.wakes("Account", before, edited(before, "status.reused", False)) == set()


def test_a_pool_that_is_unknown_wakes_no_lifecycle(world: World) -> None:
    before, after = (edited(account(state=s), "spec.accountPool", "gone") for s in ("InitializingRegions", "Ready"))
    assert world.wakes("Account", before, after) == {VALIDATION}


BOUND = edited(edited(account(state="Ready"), "spec.claimLink", "claim"), "spec.claimLinkNamespace", "tenant")
BY_PERDURE = [{"manager": "perdure", "time": "2026-01-01T00:00:00Z"}]
BY_A_PERSON = [{"manager": "kubectl", "time": "2026-01-01T00:00:00Z"}]


def by(each: Obj, writer: list[dict[str, str]]) -> Obj:
    return edited(each, "metadata.managedFields", writer)


def test_a_linked_account_wakes_its_claim_by_its_state_and_not_by_being_claimed(world: World) -> None:
    assert "AccountClaim/claim" in world.wakes("Account", BOUND, edited(BOUND, "status.state", "Failed"))
    assert world.wakes("Account", BOUND, edited(BOUND, "status.claimed", True)) == {"AccountPool/pool", VALIDATION}


def test_the_hold_of_an_account_and_its_end_wake_its_claim(world: World) -> None:
    """Also under the replaced operator's own pause, which does not concern the claim."""
    paused = edited(BOUND, "metadata.annotations", {"aws.managed.openshift.com/pause-reconciliation": "true"})
    assert "AccountClaim/claim" not in world.wakes("Account", BOUND, paused)
    annotations = {**paused["metadata"]["annotations"], "perdure.dev/paused": "true"}
    both = edited(paused, "metadata.annotations", annotations)
    assert "AccountClaim/claim" in world.wakes("Account", paused, both)
    assert "AccountClaim/claim" in world.wakes("Account", both, paused)


@pytest.mark.parametrize("after", [{}, {"aws.managed.openshift.io/close-rate-limited-until": "2026-01-01T00:00:00Z"}])
def test_a_closing_that_is_put_off_otherwise_wakes_the_claim(world: World, after: dict[str, str]) -> None:
    """The claim waits for the moment that it has seen, up to a day."""
    until = {"aws.managed.openshift.io/close-rate-limited-until": "2026-01-02T00:00:00Z"}
    put_off = edited(BOUND, "metadata.annotations", until)
    assert "AccountClaim/claim" in world.wakes("Account", put_off, edited(BOUND, "metadata.annotations", after))
    assert world.wakes("Account", put_off, deepcopy(put_off)) == set()


def test_a_claim_that_the_pool_is_about_to_link_is_left_in_peace(world: World) -> None:
    free = account(state="Ready")
    assert "AccountClaim/claim" not in world.wakes("Account", free, by(BOUND, BY_PERDURE))
    assert "AccountClaim/claim" in world.wakes("Account", free, by(BOUND, BY_A_PERSON))
    world.put(BY_NAME["AccountClaim"], claim(accountLink="account"))
    assert "AccountClaim/claim" in world.wakes("Account", free, by(BOUND, BY_PERDURE)), "it may wait for just that"


def test_an_account_that_the_pool_made_needs_no_counting(world: World) -> None:
    new = edited(account(), "spec.awsAccountID", "")
    assert world.wakes("Account", None, by(new, BY_PERDURE)) == {"Organization/aws"}
    assert "AccountPool/pool" in world.wakes("Account", None, by(new, BY_A_PERSON))
    assert "AccountPool/pool" in world.wakes("Account", None, by(edited(new, "status.state", "Ready"), BY_PERDURE))
    assert "AccountPool/pool" in world.wakes("Account", by(new, BY_PERDURE), None)


@pytest.mark.parametrize("state", ["InitializingRegions", "PendingVerification"])
def test_how_far_an_account_has_progressed_is_nothing_to_its_pool(world: World, state: str) -> None:
    assert world.wakes("Account", account(state="Creating"), account(state=state)) == set()


# What the pool is doing is not disturbed.


def patience(kind: Kind, before: Obj | None, after: Obj) -> float:
    return BY_NAME[kind.name].pacing.patience(read(kind, before) if before else None, read(kind, after))


SECRET = {"name": "aws", "namespace": "tenant"}
NEW_CLAIM = claim(legalEntity={"id": "entity", "name": "Entity"}, awsCredentialSecret=SECRET)


def test_a_new_claim_and_one_just_bound_are_the_pools_for_a_while() -> None:
    assert patience(ACCOUNT_CLAIM, None, NEW_CLAIM) > 0
    waiting = edited(NEW_CLAIM, "status.state", "Pending")
    bound = by(edited(waiting, "spec.accountLink", "account"), BY_PERDURE)
    assert patience(ACCOUNT_CLAIM, waiting, bound) > 0


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("status.state", "Pending"),
        ("spec.legalEntity.id", ""),
        ("spec.awsCredentialSecret.namespace", "another"),
        ("spec.byoc", True),
        ("metadata.deletionTimestamp", "2026-01-01T00:00:00Z"),
        ("metadata.annotations", {"perdure.dev/paused": "true"}),
    ],
)
def test_a_claim_that_the_pool_does_not_serve_is_woken_at_once(path: str, value: Any) -> None:
    assert patience(ACCOUNT_CLAIM, None, edited(NEW_CLAIM, path, value)) == 0


def test_a_link_that_a_tenant_wrote_is_observed_at_once() -> None:
    waiting = edited(NEW_CLAIM, "status.state", "Pending")
    linked = by(edited(waiting, "spec.accountLink", "account"), BY_A_PERSON)
    assert patience(ACCOUNT_CLAIM, waiting, linked) == 0


def test_an_account_just_bound_by_the_pool_notes_it_later() -> None:
    free = account(state="Ready")
    assert patience(ACCOUNT, free, by(BOUND, BY_PERDURE)) > 0
    assert patience(ACCOUNT, free, by(BOUND, BY_A_PERSON)) == 0
    assert patience(ACCOUNT, BOUND, by(BOUND, BY_PERDURE)) == 0
    dying = edited(by(BOUND, BY_PERDURE), "metadata.deletionTimestamp", "2026-01-01T00:00:00Z")
    assert patience(ACCOUNT, free, dying) == 0


def test_an_account_that_loses_its_link_wakes_the_claim_it_had(world: World) -> None:
    after = account(state="Ready")
    before = edited(edited(after, "spec.claimLink", "claim"), "spec.claimLinkNamespace", "tenant")
    assert "AccountClaim/claim" in world.wakes("Account", before, after)


def test_an_account_that_could_not_be_cleaned_wakes_its_claim_by_uid(world: World) -> None:
    """The shredder clears the status of a Failed Account without a link."""
    uid = claim()["metadata"]["uid"]
    failed = edited(account(state="Failed", reused=True), "metadata.annotations", {"perdure.dev/claim-uid": uid})
    assert "AccountClaim/claim" in world.wakes("Account", failed, edited(failed, "status", {}))
    other = edited(failed, "metadata.annotations", {"perdure.dev/claim-uid": "another"})
    assert "AccountClaim/claim" not in world.wakes("Account", other, edited(other, "status", {}))


def test_an_account_without_an_id_asks_the_organization_once(world: World) -> None:
    new = edited(account(), "spec.awsAccountID", "")
    assert "Organization/aws" in world.wakes("Account", None, new)
    assert world.wakes("Account", new, edited(new, "status.conditions", [{"type": "Other"}])) == set()
    assert "Organization/aws" in world.wakes("Account", new, edited(new, "spec.awsAccountID", "1"))


def test_an_account_that_waits_for_room_wakes_its_pool(world: World) -> None:
    new = edited(account(), "spec.awsAccountID", "")
    assert world.wakes("Account", new, edited(new, "status.conditions", [{"type": "Pending"}])) == {"AccountPool/pool"}


@pytest.mark.parametrize(
    "pause", [{"perdure.dev/paused": "true"}, {"aws.managed.openshift.com/pause-reconciliation": "true"}]
)
@pytest.mark.parametrize(
    ("resumed", "woken"),
    [
        (edited(account(), "spec.awsAccountID", ""), "Organization/aws"),
        (account(state="Creating"), "Organization/aws"),  # it may wait for its turn to opt in
        (account(state="Ready"), VALIDATION),
    ],
)
def test_what_a_paused_account_was_left_out_of_is_woken_when_it_is_resumed(
    world: World, resumed: Obj, woken: str, pause: dict[str, str]
) -> None:
    held = edited(resumed, "metadata.annotations", pause)
    assert woken in world.wakes("Account", held, resumed)
    assert woken not in world.wakes("Account", resumed, held)


def test_a_ready_account_that_appears_asks_nothing_of_the_organization(world: World) -> None:
    assert "Organization/aws" not in world.wakes("Account", None, account(state="Ready"))


def test_a_support_case_and_a_gone_account_concern_the_organization(world: World) -> None:
    pending = account(state="PendingVerification")
    assert world.wakes("Account", pending, edited(pending, "status.supportCaseID", "case-1")) == {"Organization/aws"}
    assert "Organization/aws" in world.wakes("Account", account(state="Ready"), None)


def test_a_new_claim_wakes_its_pool_and_an_unnamed_one_all(world: World) -> None:
    assert world.wakes("AccountClaim", None, claim()) == {"AccountPool/pool"}
    assert world.wakes("AccountClaim", None, claim(accountPool="")) == {"AccountPool/pool", "AccountPool/other"}


def test_a_waiting_claim_is_woken_when_its_pool_goes(world: World) -> None:
    gone = obj("pool")
    assert "AccountClaim/claim" in world.wakes("AccountPool", gone, None)
    assert "AccountClaim/claim" not in world.wakes("AccountPool", None, gone)
    assert "AccountClaim/claim" not in world.wakes("AccountPool", obj("other"), None)


@pytest.mark.parametrize("name", ["perdure.dev/paused", "managed.openshift.com/fake"])
def test_a_claim_whose_annotation_is_switched_off_wakes_its_pool(world: World, name: str) -> None:
    before, after = (edited(claim(), "metadata.annotations", {name: value}) for value in ("true", "false"))
    assert world.wakes("AccountClaim", before, after) == {"AccountPool/pool"}


def test_a_bound_claim_wakes_no_pool_and_only_an_account_that_it_leaves(world: World) -> None:
    bound = claim(accountLink="account")
    assert world.wakes("AccountClaim", claim(), bound) == set(), "the Account was linked first"
    assert world.wakes("AccountClaim", bound, claim(accountLink="another")) == {"Account/account"}
    assert world.wakes("AccountClaim", bound, edited(bound, "status.state", "Ready")) == set()


def test_a_claim_being_deleted_wakes_its_account(world: World) -> None:
    bound = claim(accountLink="account")
    dying = edited(bound, "metadata.deletionTimestamp", "2026-01-01T00:00:00Z")
    assert world.wakes("AccountClaim", bound, dying) == {"Account/account"}
    assert world.wakes("AccountClaim", dying, None) == {"Account/account", "AccountPool/pool"}


def test_a_pool_wakes_the_organization_on_its_spec_and_levers_only(world: World) -> None:
    pool = obj("pool", spec={"poolSize": 3})
    assert world.wakes("AccountPool", pool, edited(pool, "status", {"poolSize": 3})) == set()
    assert world.wakes("AccountPool", pool, edited(pool, "metadata.generation", 2)) == {"Organization/aws"}
    retry = edited(pool, "metadata.annotations", {"perdure.dev/retry": "1"})
    assert world.wakes("AccountPool", pool, retry) == {"Organization/aws"}


def test_a_changed_config_map_wakes_what_is_not_settled() -> None:
    world = World(
        (ACCOUNT_POOL, obj("pool")),
        (ACCOUNT, account(state="Ready")),
        (ACCOUNT_CLAIM, claim()),
        (ACCOUNT, {**account(state="Creating"), "metadata": {**account()["metadata"], "name": "young"}}),
    )
    before = obj("aws-account-operator-configmap", data={"account-limit": "1"})
    everyone = {"AccountPool/pool", "AccountClaim/claim", "Account/young", "Organization/aws", VALIDATION}
    for name in ("accounts ConfigMap", "accounts Secret"):
        assert world.wakes(name, before, edited(before, "data", {"account-limit": "2"})) == everyone
        assert world.wakes(name, before, edited(before, "metadata.labels", {"a": "b"})) == set()
        assert world.wakes(name, None, before) == everyone
        assert world.wakes(name, before, None) == everyone


def test_configuration_without_any_object_wakes_no_lifecycle() -> None:
    before = obj("aws-account-operator-configmap", data={"account-limit": "1"})
    assert World().wakes("accounts ConfigMap", None, before) == set()


def test_a_secret_is_remembered_by_a_hash_only() -> None:
    secret = obj("aws-account-operator-credentials", data={"aws_secret_access_key": "c2VjcmV0"})
    projection = BY_NAME["accounts Secret"].project("", secret)
    assert "c2VjcmV0" not in repr(projection)


def test_hostile_objects_are_read_without_an_error() -> None:
    for odd in (None, 3, "x", [], {"state": 7, "claimLink": None, "conditions": "x", "legalEntity": []}):
        for entry in WATCHED:
            hostile = {"metadata": {"annotations": odd, "labels": odd}, "spec": odd, "status": odd, "data": odd}
            entry.project("", cast(JsonObject, hostile))


def test_the_area_is_in_the_table() -> None:
    watched = watched_under(Settings())
    assert set(WATCHED) <= set(watched)
    names = [entry.name for entry in watched]
    assert len(names) == len(set(names))
