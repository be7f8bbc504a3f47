"""`perdure why awsmachine` and its like: which instance's lifecycle belongs to an object of Cluster API."""

from __future__ import annotations

from typing import cast

import pytest
import typer
from instance_scenes import ACCOUNT, ID, REGION

from domain.identity import Kind
from domain.instances import AWS_MACHINE, AWS_MACHINE_POOL, MACHINE, NODE
from domain.instances.workflow_ids import InstanceKey
from starters.cli.machines import Named, instance_of, lifecycle_behind, named_in, owner_of
from starters.cli.object_reference import kind_named, target
from starters.cli.output import CommandError
from starters.cli.session import Session

HERE = (ACCOUNT, REGION)
ELSEWHERE = ("9" * 12, REGION)
LIFECYCLES = target("awsmachine", "c/m")
NAMED = Named(instance=ID, region=REGION)


def id_of(account: str, region: str) -> str:
    return InstanceKey(account=account, region=region, instance_id=ID).workflow_id


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("AWSMachine", AWS_MACHINE),
        ("awsm", AWS_MACHINE),
        ("awsmachines.infrastructure.cluster.x-k8s.io", AWS_MACHINE),
        ("awsmp", AWS_MACHINE_POOL),
        ("machines", MACHINE),
        ("ma", MACHINE),
    ],
)
def test_an_object_of_cluster_api_is_named_as_kubectl_names_it(word: str, kind: Kind) -> None:
    assert target(word, "c/m").kind == kind


@pytest.mark.parametrize("word", ["node", "Node", "nodes", "no"])
def test_a_node_is_named_without_a_namespace(word: str) -> None:
    requested = target(word, "ip-10-0-1-7.eu-central-1.compute.internal")
    assert (requested.kind, requested.namespace) == (NODE, "")
    assert str(requested) == "Node ip-10-0-1-7.eu-central-1.compute.internal"
    with pytest.raises(typer.BadParameter, match="not a valid name"):
        target(word, "c/m")


async def test_a_node_of_another_cloud_has_no_lifecycle() -> None:
    elsewhere = {"spec": {"providerID": "gce:///zone/i-1"}}
    with pytest.raises(CommandError, match="not an EC2 instance"):
        await lifecycle_behind(cast("Session", None), target("node", "a"), elsewhere)


@pytest.mark.parametrize(("kind", "instead"), [("awsmachine", "ec2instance"), ("awsmachinepool", "autoscalinggroup")])
def test_a_kind_of_cluster_api_has_no_lifecycles_to_list(kind: str, instead: str) -> None:
    with pytest.raises(typer.BadParameter, match=f"use {instead}"):
        kind_named(kind)


def test_the_instance_is_read_from_either_id_in_the_spec() -> None:
    provider_id = f"aws:///{REGION}a/{ID}"
    assert named_in({"spec": {"providerID": provider_id}}) == NAMED
    assert named_in({"spec": {"instanceID": ID, "providerID": provider_id}}) == NAMED
    assert named_in({"spec": {"instanceID": ID}}) == Named(instance=ID)
    assert named_in({"spec": {}}) == Named()


def test_a_machine_is_distinguished_from_other_owners() -> None:
    owners = [{"kind": "AWSMachinePool", "name": "p"}, {"kind": "Machine", "name": "m"}]
    assert owner_of({"metadata": {"ownerReferences": owners}}) == "m"
    assert owner_of({"metadata": {"ownerReferences": owners[:1]}}) == ""


@pytest.mark.parametrize(
    ("named", "lifecycles", "served", "account"),
    [
        (NAMED, {id_of(*HERE): True}, (), ACCOUNT),
        (NAMED, {id_of(*HERE): False}, (ELSEWHERE,), ACCOUNT),
        (NAMED, {id_of(*HERE): False, id_of(*ELSEWHERE): True}, (HERE,), ELSEWHERE[0]),
        (NAMED, {}, (HERE, (ELSEWHERE[0], "us-west-2")), ACCOUNT),
        (NAMED, {id_of(ELSEWHERE[0], "us-west-2"): True}, (HERE,), ACCOUNT),
        (Named(instance=ID), {}, (HERE,), ACCOUNT),
    ],
)
def test_the_account_is_that_of_its_lifecycle_or_the_only_one_served_in_its_region(
    named: Named, lifecycles: dict[str, bool], served: tuple[tuple[str, str], ...], account: str
) -> None:
    found = instance_of(LIFECYCLES, named, lifecycles, served)
    assert found == InstanceKey(account=account, region=REGION, instance_id=ID)


@pytest.mark.parametrize(
    ("served", "text"), [((), "is not served"), ((HERE, ELSEWHERE), "several accounts or regions")]
)
def test_an_instance_of_unknown_account_is_refused(served: tuple[tuple[str, str], ...], text: str) -> None:
    with pytest.raises(CommandError, match=text):
        instance_of(LIFECYCLES, NAMED, {}, served)
