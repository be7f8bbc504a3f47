"""The lifecycle of the instance or group behind a Node or an object of Cluster API or its AWS provider.

    Machine ──► its instance, by the Machine's or AWSMachine's provider id ┐
    AWSMachine, Node ──► its instance ─────────────────────────────────────┴─► Ec2Instance ACCOUNT/REGION/INSTANCE
    AWSMachinePool ──► its group, by the group's ARN ────────────────────────► AutoScalingGroup ACCOUNT/REGION/GROUP

An instance that has a lifecycle is found by its id, which is unique in AWS. An instance without a lifecycle is found
only if exactly one account is served in its region.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from domain.identity import Key
from domain.instances import AWS_MACHINE, AWS_MACHINE_POOL, EC2_INSTANCE, EXTERNAL_KINDS, MACHINE, NODE
from domain.instances.provider_ids import group_of_arn, instance_of_provider_id, region_of_provider_id
from domain.instances.served_queues import served
from domain.instances.workflow_ids import InstanceKey
from domain.model import Model
from engine.kube.json import JsonObject, sequence, text
from engine.temporal import described
from starters.cli.object_reference import Target, usable_outside
from starters.cli.output import CommandError
from starters.cli.served_queues import places_of
from starters.cli.session import Session

# Provider ids of other providers have the same form.
_OF_AWS = "aws:"
SHOWN_BY = f"kubectl lists these objects; `perdure list {EC2_INSTANCE.name}` shows the instances that have a lifecycle"


class Named(Model):
    """An instance, as a provider id names it. `region` is empty if the provider id contains no zone."""

    instance: str = ""
    region: str = ""


def others(target: Target) -> bool:
    return target.kind in EXTERNAL_KINDS


async def lifecycle_behind(session: Session, target: Target, obj: JsonObject) -> Key:
    """The lifecycle of the object's instance or group. Raises CommandError if the object has neither, or if the account
    and region are not served.
    """
    if target.kind == AWS_MACHINE_POOL:
        group = group_of_arn(text(obj, "spec", "providerID"))
        if group is None:
            raise CommandError(
                f"{target} has no Auto Scaling group yet", "wait until its spec.providerID names the group"
            )
        at = (group.account, group.region)
        if at not in await _served(session) and await described(session.temporal, group.lifecycle) is None:
            raise CommandError(f"{target} is in {group.account}/{group.region}, which is not served", _SERVED_BY)
        return group.lifecycle_in(session.settings.cluster)
    named = named_in(obj)
    if target.kind == NODE and not text(obj, "spec", "providerID").startswith(_OF_AWS):
        raise CommandError(f"{target} is not an EC2 instance", "its spec.providerID does not begin with aws:")
    if target.kind == MACHINE and not (named.instance and text(obj, "spec", "providerID").startswith(_OF_AWS)):
        named = await _of_its_awsmachine(session, target)
    if not usable_outside(named.instance):
        raise CommandError(f"{target} has no instance yet", "wait until its spec.providerID names the instance")
    found = instance_of(target, named, await _lifecycles_of(session, named.instance), await _served(session))
    return found.lifecycle_in(session.settings.cluster)


def instance_of(
    target: Target, named: Named, lifecycles: Mapping[str, bool], at: Collection[tuple[str, str]]
) -> InstanceKey:
    """The instance with its account and region. Raises CommandError unless exactly one account and region is possible.

    `lifecycles` maps the workflow ids of the instance's lifecycles to whether each is open. `at` contains the served
    accounts and regions.
    """
    had = {_place_of(id_): is_open for id_, is_open in lifecycles.items() if named.region in ("", _place_of(id_)[1])}
    among = [where for where, is_open in had.items() if is_open] or list(had)
    among = among or [where for where in at if named.region in ("", where[1])]
    if not among:
        where = f"region {named.region}" if named.region else "its region"
        raise CommandError(
            f"instance {named.instance} of {target} has no lifecycle, and {where} is not served", _SERVED_BY
        )
    if len(among) > 1:
        listed = ", ".join(f"{account}/{region}" for account, region in sorted(among))
        raise CommandError(
            f"instance {named.instance} of {target} may be in several accounts or regions: {listed}",
            f"name the right one: perdure why {EC2_INSTANCE.name} ACCOUNT/REGION/{named.instance}",
        )
    ((account, region),) = among
    return InstanceKey(account=account, region=region, instance_id=named.instance)


def _place_of(workflow_id: str) -> tuple[str, str]:
    _, account, region, _ = workflow_id.split("/")
    return account, region


def named_in(obj: JsonObject) -> Named:
    provider_id = text(obj, "spec", "providerID")
    instance = text(obj, "spec", "instanceID") or instance_of_provider_id(provider_id)
    return Named(instance=instance, region=region_of_provider_id(provider_id))


async def _of_its_awsmachine(session: Session, machine: Target) -> Named:
    """The instance that the Machine's AWSMachine names. An AWSMachine gets the id before its Machine."""
    listing = await session.cluster_of(AWS_MACHINE).list(AWS_MACHINE, machine.namespace)
    return next((named_in(each) for each in listing.items if owner_of(each) == machine.name), Named())


def owner_of(awsmachine: JsonObject) -> str:
    owners = sequence(awsmachine, "metadata", "ownerReferences")
    return next((text(each, "name") for each in owners if text(each, "kind") == MACHINE.name), "")


async def _lifecycles_of(session: Session, instance: str) -> dict[str, bool]:
    found: dict[str, bool] = {}
    async for execution in session.temporal.list_workflows(
        f"OpKind = '{EC2_INSTANCE.name}' AND OpName = '{instance}'", limit=20
    ):
        found[execution.id] = found.get(execution.id, False) or execution.close_time is None
    return found


async def _served(session: Session) -> frozenset[tuple[str, str]]:
    return served(await places_of(session))


_SERVED_BY = "PERDURE_INSTANCES_QUEUES names what is served: ACCOUNT/REGION[/QUEUE]"
