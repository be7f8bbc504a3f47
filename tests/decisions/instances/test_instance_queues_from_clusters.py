"""Where instances are served by the clusters of the AWS provider."""

from __future__ import annotations

import asyncio

import pytest
from memory_kube import MemoryKube

from activities.instances import queues_from_clusters
from activities.instances.queues_from_clusters import ClusterPlaces
from domain.identity import Kind
from domain.instances import AWS_CLUSTER, AWS_CLUSTER_ROLE_IDENTITY, AWS_MANAGED_CONTROL_PLANE
from domain.instances.queues_from_clusters import (
    ClusterEntry,
    ProviderCluster,
    check_entries,
    cluster_entries,
    places_of_clusters,
    servable,
)
from engine.errors import Unavailable

OWN = "123456789012"
OTHER = "210987654321"
ROLE = f"arn:aws:iam::{OTHER}:role/capa/controllers"


@pytest.fixture
def kube() -> MemoryKube:
    return MemoryKube()


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("clusters", ClusterEntry()),
        ("clusters/*-queue", ClusterEntry(queue="*-queue")),
        ("clusters/events@team/perdure", ClusterEntry(queue="events", role="team/perdure")),
        ("clusters@perdure", ClusterEntry(role="perdure")),
    ],
)
def test_an_entry_for_clusters_is_read_beside_others(text: str, entry: ClusterEntry) -> None:
    other = f"{OWN}/eu-central-1"
    assert cluster_entries([other, text]) == ((other,), (entry,))
    check_entries([other, text])


@pytest.mark.parametrize(
    "texts",
    [
        ["clusters/"],
        ["clusters/a b"],
        ["clusters/*"],
        ["clusters@"],
        [f"clusters@{ROLE}"],
        ["clusters", "nonsense"],
        [f"{OWN}/eu-central-1={OTHER}/eu-central-1"],
    ],
)
def test_a_wrong_entry_is_refused_before_anything_is_connected_to(texts: list[str]) -> None:
    with pytest.raises(ValueError, match=r"is not of the form|shares the queue"):
        check_entries(texts)


def test_a_shared_queue_may_be_one_of_the_clusters() -> None:
    check_entries(["clusters", f"{OWN}/eu-central-1={OTHER}/eu-central-1"])


def cluster(name: str = "c", region: str = "eu-central-1", account: str = OWN, role: str = "") -> ProviderCluster:
    return ProviderCluster(namespace="team", name=name, region=region, account=account, role=role)


@pytest.mark.parametrize(
    ("entries", "clusters", "places"),
    [
        ([ClusterEntry()], [], ()),
        ([ClusterEntry()], [cluster("a"), cluster("b")], (f"{OWN}/eu-central-1/perdure-instance-events",)),
        (
            [ClusterEntry(queue="*-queue")],
            [cluster("b.c"), cluster("a")],
            (f"{OWN}/eu-central-1/a-queue", f"{OWN}/eu-central-1/b-c-queue"),
        ),
        (
            [ClusterEntry(queue="q")],
            [cluster(account=OTHER, role=ROLE), cluster()],
            (f"{OWN}/eu-central-1/q", f"{OTHER}/eu-central-1/q@{ROLE}"),
        ),
        (
            [ClusterEntry(queue="q", role="perdure")],
            [cluster(region="cn-north-1", account=OTHER, role=ROLE)],
            (f"{OTHER}/cn-north-1/q@arn:aws-cn:iam::{OTHER}:role/perdure",),
        ),
    ],
)
def test_clusters_show_their_places(
    entries: list[ClusterEntry], clusters: list[ProviderCluster], places: tuple[str, ...]
) -> None:
    assert places_of_clusters(entries, clusters) == (places, ())


@pytest.mark.parametrize(
    ("entry", "odd"),
    [
        (ClusterEntry(), cluster("odd", account="ACCOUNT_ID", role="arn:aws:iam::ACCOUNT_ID:role/capa")),
        (ClusterEntry(role="perdure"), cluster("odd", account="ACCOUNT_ID", role="arn:aws:iam::ACCOUNT_ID:role/capa")),
        (ClusterEntry(), cluster("odd", account=OTHER, role=f"arn:aws:iam::{OTHER}:user/capa")),
        (ClusterEntry(), cluster("odd", account=OTHER, role=f"{ROLE}\n")),
        (ClusterEntry(queue="*-queue"), cluster("odd" * 25)),
    ],
    ids=["no account", "no account for the entry's role", "a user", "a line feed", "a long name"],
)
def test_a_cluster_without_a_valid_place_is_left_out_and_named(entry: ClusterEntry, odd: ProviderCluster) -> None:
    found, (left_out,) = places_of_clusters([entry], [odd, cluster("good")])
    assert found == places_of_clusters([entry], [cluster("good")])[0]
    assert "Cluster team/odd" in left_out


def test_an_account_that_shares_a_queue_is_left_out_until_a_cluster_provides_it() -> None:
    shares, own = f"{OTHER}/eu-central-1={OWN}/eu-central-1/q", f"{OWN}/eu-central-1/q"
    assert servable([shares]) == ((), (shares,))
    assert servable([shares, own]) == ((shares, own), ())


class Credentials:
    """The process's own credentials: whose they are, or why AWS does not say."""

    def __init__(self, *answers: str | Exception) -> None:
        self.answers = list(answers)

    def own_account(self, region: str) -> str:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def following(kube: MemoryKube, *answers: str | Exception, queue: str = "q") -> ClusterPlaces:
    return ClusterPlaces(kube, [ClusterEntry(queue=queue)], Credentials(*answers))  # type: ignore[arg-type]


async def made(
    kube: MemoryKube,
    name: str,
    region: str = "eu-central-1",
    kind: Kind = AWS_CLUSTER,
    identity: tuple[str, str] = ("", ""),
) -> None:
    owner = {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": name, "uid": f"u-{name}"}
    reference = {"identityRef": {"kind": identity[0], "name": identity[1]}} if any(identity) else {}
    spec = {"region": region, **reference}
    await kube.create(kind, {"metadata": {"name": f"{name}-infra", "ownerReferences": [owner]}, "spec": spec}, "team")


async def role_identity(kube: MemoryKube, name: str, role: str) -> None:
    await kube.create(AWS_CLUSTER_ROLE_IDENTITY, {"metadata": {"name": name}, "spec": {"roleARN": role}})


async def test_a_cluster_is_in_its_identitys_account_else_in_the_process_s_own(kube: MemoryKube) -> None:
    found = following(kube, OWN, OWN, queue="*-queue")
    assert await found.current() == ()
    await role_identity(kube, "other", ROLE)
    await made(kube, "a", identity=("AWSClusterRoleIdentity", "other"))
    await made(kube, "b", identity=("AWSClusterControllerIdentity", "default"))
    await made(kube, "c", region="eu-west-1")
    assert await found.current() == (
        f"{OWN}/eu-central-1/b-queue",
        f"{OWN}/eu-west-1/c-queue",
        f"{OTHER}/eu-central-1/a-queue@{ROLE}",
    )


@pytest.mark.parametrize(
    "identity",
    [
        ("AWSClusterStaticIdentity", "keys"),
        ("AWSClusterRoleIdentity", "not there yet"),
    ],
)
async def test_a_cluster_whose_account_is_unknown_is_left_out(kube: MemoryKube, identity: tuple[str, str]) -> None:
    found = following(kube)
    await made(kube, "a", identity=identity)
    await made(kube, "b", region="nowhere at all")
    assert await found.current() == ()


@pytest.mark.parametrize("role", ["arn:aws:iam::ACCOUNT_ID:role/capa", "capa-role"])
async def test_a_cluster_whose_role_is_invalid_is_left_out_and_logged_once(
    kube: MemoryKube, caplog: pytest.LogCaptureFixture, role: str
) -> None:
    found = following(kube, OWN)
    await role_identity(kube, "odd", role)
    await made(kube, "a", identity=("AWSClusterRoleIdentity", "odd"))
    await made(kube, "b")
    for _ in range(2):
        assert await found.current() == (f"{OWN}/eu-central-1/q",)
    (logged,) = caplog.messages
    assert "Cluster team/a" in logged
    assert role in logged


async def test_a_control_plane_of_eks_shows_its_place_too(kube: MemoryKube) -> None:
    found = following(kube, OWN)
    await made(kube, "a", kind=AWS_MANAGED_CONTROL_PLANE)
    assert await found.current() == (f"{OWN}/eu-central-1/q",)


async def test_the_places_are_others_once_a_cluster_lives_elsewhere(
    kube: MemoryKube, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues_from_clusters, "GATHER_SECONDS", 0)
    found = following(kube, OWN, Unavailable("STS: no answer", code="Timeout"), OWN)
    await made(kube, "a")
    before = await found.current()
    others = asyncio.create_task(found.other_than(before))
    await made(kube, "b")
    for _ in range(20):
        await asyncio.sleep(0)
    assert not others.done(), "another cluster, the same place"
    await made(kube, "c", region="eu-west-1")  # whose account AWS does not tell at once
    async with asyncio.timeout(5):
        assert await others == (f"{OWN}/eu-central-1/q", f"{OWN}/eu-west-1/q")
