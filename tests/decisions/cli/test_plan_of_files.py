"""Planning a change that is not applied: the file, the cluster as it is supposed to be, and every kind's lifecycle."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import yaml

from domain.accounts import ACCOUNT, ACCOUNT_POOL
from domain.custom_resources import custom_resources
from domain.identity import Key, Kind
from engine.errors import Denied
from engine.kube import JsonObject, KubeApi, Listing
from starters.cli.output import CommandError
from starters.cli.plan_files import OnlyAsking, SupposedKube, lifecycle_of, read
from workers.registry import actions

POOL = """
apiVersion: aws.managed.openshift.io/v1alpha1
kind: AccountPool
metadata: {name: p}
spec: {poolSize: 2}
"""

CLAIM = """
apiVersion: poolboy.gpte.redhat.com/v1
kind: ResourceClaim
metadata: {name: c}
spec: {lifespan: {start: 2026-12-01, end: 2026-12-24T18:00:00Z}}
"""


def account(name: str, size: str = "as it is", namespace: str = "ns") -> JsonObject:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"legalEntity": {"name": size}}}


def listed(*objects: JsonObject) -> list[tuple[str, object]]:
    return [
        (str(each["metadata"]["name"]), each["spec"]["legalEntity"]["name"]) for each in map(dict[str, Any], objects)
    ]


@pytest.fixture
def kube(monkeypatch: pytest.MonkeyPatch) -> SupposedKube:
    """A cluster with two Accounts, of which one is supposed to be otherwise, and one more to be there."""

    async def pages(*_: object, **__: object) -> AsyncGenerator[Listing, None]:
        yield Listing([account("one"), account("two")], "7")

    async def get(_: KubeApi, kind: Kind, namespace: str, name: str) -> JsonObject:
        return account(name, namespace=namespace)

    monkeypatch.setattr(KubeApi, "pages", pages)
    monkeypatch.setattr(KubeApi, "get", get)
    made = SupposedKube.__new__(SupposedKube)
    made.suppose([(ACCOUNT, account("two", "supposed")), (ACCOUNT, account("new", "supposed"))])
    return made


async def test_an_object_of_a_file_is_read_in_the_place_of_the_real_one(kube: SupposedKube) -> None:
    found = [await kube.get(ACCOUNT, "ns", name) for name in ("one", "two", "new")]
    assert listed(*found) == [("one", "as it is"), ("two", "supposed"), ("new", "supposed")]


async def test_lists_have_what_is_supposed_once(kube: SupposedKube) -> None:
    listing = await kube.list(ACCOUNT)
    assert listed(*listing.items) == [("one", "as it is"), ("two", "supposed"), ("new", "supposed")]
    assert listing.resource_version == "7"


async def test_lists_of_other_namespaces_kinds_and_choices_have_nothing_new(kube: SupposedKube) -> None:
    assert len((await kube.list(ACCOUNT, "elsewhere")).items) == 2
    assert len((await kube.list(ACCOUNT_POOL)).items) == 2
    assert len((await kube.list(ACCOUNT, "ns", label_selector="a=b")).items) == 2


def test_a_file_is_read_with_the_kinds_of_its_objects(tmp_path: Path) -> None:
    file = tmp_path / "pool.yaml"
    file.write_text(f"{POOL}---\n{POOL.replace('name: p', 'name: q, namespace: there')}")
    assert [(kind.name, obj["metadata"]) for kind, obj in read(file, "here")] == [
        ("AccountPool", {"name": "p", "namespace": "here"}),
        ("AccountPool", {"name": "q", "namespace": "there"}),
    ]


def test_the_members_of_a_list_are_read_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    members = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(POOL)] * 2})
    monkeypatch.setattr("sys.stdin", io.StringIO(members))
    assert [kind.name for kind, _ in read(Path("-"), "here")] == ["AccountPool", "AccountPool"]


def test_a_time_without_quotes_is_text_as_for_kubectl(tmp_path: Path) -> None:
    file = tmp_path / "claim.yaml"
    file.write_text(CLAIM)
    ((_, claim),) = read(file, "here")
    assert json.loads(json.dumps(claim))["spec"]["lifespan"] == {"start": "2026-12-01", "end": "2026-12-24T18:00:00Z"}


@pytest.mark.parametrize("namespace", ["", '""', "null"])
def test_an_empty_namespace_is_as_none(namespace: str, tmp_path: Path) -> None:
    file = tmp_path / "pool.yaml"
    file.write_text(POOL.replace("name: p", f"name: p, namespace: {namespace}"))
    ((_, pool),) = read(file, "here")
    assert pool["metadata"] == {"name": "p", "namespace": "here"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "contains no object"),
        ("a: [", "cannot be read"),
        (POOL.replace("AccountPool", "Deployment"), "Deployment of aws.managed.openshift.io/v1alpha1 has no lifecycle"),
        (POOL.replace("v1alpha1", "v1"), "has no lifecycle here"),
        (POOL.replace("name: p", ""), "has no name"),
        ("just words", "'just words' has no lifecycle here"),
    ],
)
def test_a_file_that_holds_something_else_is_refused(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "file.yaml"
    file.write_text(text)
    with pytest.raises(CommandError, match=message):
        read(file, "here")


@pytest.mark.parametrize(
    "kind", [model.kind_of for model in custom_resources() if model.kind_of.lifecycle], ids=lambda kind: kind.name
)
def test_every_kind_can_be_observed_outside_of_its_workflow(kind: Kind) -> None:
    lifecycle = lifecycle_of(kind, Key(kind=kind.name, namespace="ns", name="one", uid="42"))
    assert lifecycle.observation(dry_run=True).activity in actions()


async def test_a_plan_queries_lifecycles_and_signals_none() -> None:
    class Real:
        def get_workflow_handle(self, workflow_id: str) -> Real:
            return self

        async def query(self, name: str) -> str:
            return f"answer to {name}"

        async def signal(self, name: str) -> None:
            raise AssertionError(name)

    client: Any = OnlyAsking(Real())
    assert await client.get_workflow_handle("one").query("room") == "answer to room"
    with pytest.raises(Denied):
        client.get_workflow_handle("one").signal("wake")
    with pytest.raises(Denied):
        client.start_workflow("Account")
