"""What changes of federated roles and accesses wake."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from edited_documents import edited

from domain.accounts import ACCOUNT_CLAIM, AWS_FEDERATED_ACCOUNT_ACCESS, AWS_FEDERATED_ROLE
from domain.accounts.constants import FINALIZER
from starters.watch.accounts import WATCHED as ACCOUNTS
from starters.watch.federated import WATCHED, federated_gauges
from starters.watch.projection import Projection
from starters.watch.projection_index import Index
from starters.watch.watched_kinds import Watched

Obj = dict[str, Any]
ENTRIES = {entry.name: entry for entry in WATCHED}
ROLE, ACCESS = ENTRIES[AWS_FEDERATED_ROLE.name], ENTRIES[AWS_FEDERATED_ACCOUNT_ACCESS.name]


def obj(name: str, namespace: str, spec: Obj, status: Obj) -> Obj:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": "1", "generation": 1}
    return {"metadata": {**metadata, "finalizers": [FINALIZER]}, "spec": spec, "status": status}


def role(**status: Any) -> Obj:
    return obj("role", "ops", {}, {"state": "Valid", "observedGeneration": 1, **status})


def access(name: str = "access", to: str = "role", **status: Any) -> Obj:
    spec = {"awsFederatedRole": {"name": to, "namespace": "ops"}}
    return obj(name, "tenant", spec, {"state": "Ready", "granted": "digest", **status})


def seen(entry: Watched, each: Obj) -> Projection:
    return entry.project("", each)


@pytest.fixture
def index() -> Index:
    known = Index()
    for entry, each in ((ROLE, role()), (ACCESS, access()), (ACCESS, access("other", "elsewhere"))):
        projection = seen(entry, each)
        known.of(entry.name)[projection.name] = projection
    return known


def woken(entry: Watched, before: Obj | None, after: Obj | None, index: Index) -> set[str]:
    sides = [seen(entry, each) if each else None for each in (before, after)]
    return {key.name for key in entry.relatives(sides[0], sides[1], index)}


GOING = "metadata.deletionTimestamp"


@pytest.mark.parametrize(
    ("change", "wakes"),
    [
        (lambda before: edited(before, "metadata.generation", 2), {"access"}),
        (lambda before: edited(before, GOING, "2026-05-01T11:00:00Z"), {"access"}),
        (lambda before: None, {"access"}),
        (lambda before: edited(before, "status.state", "Invalid"), set()),
        (lambda before: edited(before, "metadata.annotations.x", "y"), set()),
    ],
)
def test_a_role_wakes_its_accesses_when_what_they_have_of_it_changes(
    index: Index, change: Callable[[Obj], Obj | None], wakes: set[str]
) -> None:
    assert woken(ROLE, role(), change(role()), index) == wakes


def test_a_role_that_comes_wakes_those_who_wait_for_it(index: Index) -> None:
    assert woken(ROLE, None, role(), index) == {"access"}


def test_an_access_that_goes_wakes_its_role_only_while_that_is_being_deleted(index: Index) -> None:
    assert woken(ACCESS, access(), None, index) == set()
    going = seen(ROLE, edited(role(), GOING, "2026-05-01T11:00:00Z"))
    index.of(ROLE.name)[going.name] = going
    assert woken(ACCESS, access(), None, index) == {"role"}
    assert woken(ACCESS, None, access("new"), index) == {"role"}
    assert woken(ACCESS, access(), access(state="Failed"), index) == set()


def test_an_access_that_goes_wakes_the_claims_that_end_in_its_namespace(index: Index) -> None:
    watched = next(entry for entry in ACCOUNTS if entry.kind == ACCOUNT_CLAIM)
    going = {"deletionTimestamp": "2026-05-01T11:00:00Z"}
    for name, namespace, more in (("ends", "tenant", going), ("lives", "tenant", {}), ("far", "elsewhere", going)):
        each = obj(name, namespace, {"byoc": True}, {"state": "Ready"})
        known = seen(watched, {**each, "metadata": {**each["metadata"], **more}})
        index.of(watched.name)[known.name] = known
    assert woken(ACCESS, access(), None, index) == {"ends"}
    assert woken(ACCESS, access(), access(state="Failed"), index) == set()


def test_accesses_whose_role_went_unseen_are_found(index: Index) -> None:
    assert {key.name for key in ROLE.missing(index)} == {"other"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.annotations.lastRoleUpdate", "Friday"),
        ("metadata.labels.uid", "zzzzzz"),
        ("metadata.annotations", {"perdure.dev/retry": "1"}),
        ("metadata.generation", 2),
        ("status.state", ""),
        ("status.granted", ""),
    ],
)
def test_an_input_of_an_access_is_in_its_fingerprint(path: str, value: Any) -> None:
    assert seen(ACCESS, access()).fingerprint != seen(ACCESS, edited(access(), path, value)).fingerprint


@pytest.mark.parametrize(("entry", "each"), [(ROLE, role()), (ACCESS, access())])
def test_a_federated_object_without_our_finalizer_is_woken_to_get_it_back(entry: Watched, each: Obj) -> None:
    assert seen(entry, each).fingerprint != seen(entry, edited(each, "metadata.finalizers", [])).fingerprint


def test_the_stamp_is_news_though_perdure_wrote_it() -> None:
    stamped = edited(access(), "metadata.annotations.lastRoleUpdate", "Friday")
    assert seen(ACCESS, access()).handed != seen(ACCESS, stamped).handed


@pytest.mark.parametrize(
    ("each", "named"),
    [
        (access(), ""),
        (access(state="Failed"), "keys"),
        (access(conditions=[{"type": "Synced", "status": "False"}]), "keys"),
        (edited(access(), GOING, "2026-05-01T11:00:00Z"), "keys"),
    ],
)
def test_the_customers_secret_is_watched_while_an_access_waits(each: Obj, named: str, index: Index) -> None:
    projection = seen(ACCESS, edited(each, "spec.awsCustomerCredentialSecret.name", "keys"))
    declared = ACCESS.declared(projection)
    assert [entry.followed.field_selector for entry in declared] == ([f"metadata.name={named}"] if named else [])
    index.of(ACCESS.name)[projection.name] = projection
    for entry in declared:
        secret = seen(entry, obj("keys", "tenant", {}, {}))
        assert {key.name for key in entry.relatives(None, secret, index)} == {"access"}
        elsewhere = seen(entry, obj("keys", "elsewhere", {}, {}))
        assert entry.relatives(None, elsewhere, index) == set()


@pytest.mark.parametrize(
    ("entry", "each", "settled"),
    [
        (ROLE, role(), True),
        (ROLE, role(observedGeneration=0), False),
        (ROLE, role(state="Invalid"), False),
        (ROLE, edited(role(), "metadata.finalizers", []), False),
        (ACCESS, access(), True),
        (ACCESS, access(granted=""), False),
        (ACCESS, access(state="Failed"), False),
        (ACCESS, edited(access(), "metadata.annotations", {"perdure.dev/retry": "1"}), False),
    ],
)
def test_an_object_with_nothing_left_to_do_is_settled(entry: Watched, each: Obj, settled: bool) -> None:
    assert seen(entry, each).settled is settled


def test_lifecycles_are_counted_by_phase(index: Index) -> None:
    paused = seen(ACCESS, edited(access("paused"), "metadata.annotations", {"perdure.dev/paused": "true"}))
    index.of(ACCESS.name)[paused.name] = paused
    (family,) = federated_gauges(index)
    counted = {(s.labels["kind"], s.labels["phase"]): s.value for s in family.samples}
    assert counted == {
        ("AWSFederatedRole", "Valid"): 1,
        ("AWSFederatedAccountAccess", "Ready"): 2,
        ("AWSFederatedAccountAccess", "Paused"): 1,
    }
