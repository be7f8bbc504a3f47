"""EC2 instances on the local deployment: worker and watcher as processes, the emulator's EC2, a real API server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import boto3
import pytest
from aiohttp import ClientSession, web
from product import perdure, process
from temporalio.client import Client
from temporalio.service import RPCError
from waiting import eventually
from webhook import CONFIDENTIAL, serving

from domain.instances import (
    AWS_MACHINE,
    AWS_MACHINE_POOL,
    INTERRUPTION_POLICY,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    THE_SWEEP,
)
from domain.instances.constants import (
    CLUSTER_LABEL,
    DELETE_FIRST_ANNOTATION,
    DEPLOYMENT_LABEL,
    GROUP_STATE_LABEL,
    INTERRUPTION_LABEL,
    REPLACING_ANNOTATION,
    STATE_LABEL,
)
from domain.instances.event_handover import Outcome, Taken
from domain.instances.events import EventKind, HealthNotice, InstanceEvent, InstanceState
from domain.instances.replacements import CLOCKS_DIFFER
from domain.instances.workflow_ids import InstanceKey
from domain.why import Why
from engine.errors import Absent
from engine.kube import EVENT, KubeApi
from engine.kube.json import JsonObject, mapping, sequence, text
from localcloud.aws.contract import PAYER_ACCOUNT_ID
from localcloud.deployment import Deployment
from localcloud.seed import seed_cluster_api
from starters.events.temporal import hand_over
from tests.running.temporal_client import temporal_of

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

REGION = "us-east-1"
PLACE = f"{PAYER_ACCOUNT_ID}/{REGION}"


class Cloud:
    """The emulator's EC2, and the objects of the instances that a test makes."""

    def __init__(self, deployment: Deployment, kube: KubeApi, temporal: Client, namespace: str) -> None:
        env = deployment.env()
        session: Any = boto3.Session(env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"], region_name=REGION)
        self.ec2: Any = session.client("ec2", endpoint_url=env["AWS_ENDPOINT_URL"])
        self.scaling: Any = session.client("autoscaling", endpoint_url=env["AWS_ENDPOINT_URL"])
        self.kube = kube
        self.temporal = temporal
        self.namespace = namespace

    def launch(self) -> InstanceKey:
        image = self.ec2.describe_images()["Images"][0]["ImageId"]
        answer = self.ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1)
        return self.key(answer["Instances"][0]["InstanceId"])

    def group(self, name: str) -> str:
        """An Auto Scaling group of one instance; its ARN."""
        image = self.ec2.describe_images()["Images"][0]["ImageId"]
        self.scaling.create_launch_configuration(LaunchConfigurationName=name, ImageId=image, InstanceType="t3.micro")
        self.scaling.create_auto_scaling_group(
            AutoScalingGroupName=name,
            LaunchConfigurationName=name,
            MinSize=1,
            MaxSize=1,
            AvailabilityZones=[f"{REGION}a"],
        )
        (found,) = self.scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
        arn: str = found["AutoScalingGroupARN"]
        return arn

    @staticmethod
    def key(instance: str) -> InstanceKey:
        return InstanceKey(account=PAYER_ACCOUNT_ID, region=REGION, instance_id=instance)

    async def machine(self, key: InstanceKey, name: str = "", **metadata: Any) -> str:
        """An AWSMachine of the instance, and its Machine."""
        name = name or f"m-{uuid4().hex[:8]}"
        owner = await self.kube.create(
            MACHINE, {"metadata": {"name": name, **metadata}, "spec": {"clusterName": "c1"}}, self.namespace
        )
        reference = {"apiVersion": MACHINE.api_version, "kind": MACHINE.name, "name": name}
        spec = {"instanceID": key.instance_id, "providerID": f"aws:///{REGION}a/{key.instance_id}"}
        owners = [{**reference, "uid": text(owner, "metadata", "uid")}]
        await self.kube.create(
            AWS_MACHINE, {"metadata": {"name": name, "ownerReferences": owners}, "spec": spec}, self.namespace
        )
        return name

    async def labels(self, name: str) -> dict[str, object]:
        return dict(mapping(await self.kube.get(AWS_MACHINE, self.namespace, name), "metadata", "labels"))

    async def labelled(self, name: str, state: str | None, label: str = STATE_LABEL) -> None:
        async def true() -> bool:
            return (await self.labels(name)).get(label) == state

        await eventually(true, f"{name} has {label}={state}")

    async def hand_over(self, key: InstanceKey, *events: InstanceEvent, receives: int = 1) -> Taken:
        return await hand_over(self.temporal, "")(key, events, receives)

    async def why(self, key: InstanceKey) -> Why:
        answer: Why = await self.temporal.get_workflow_handle(key.workflow_id).query("why", result_type=Why)
        return answer

    async def events_of(self, reason: str) -> list[JsonObject]:
        found = await self.kube.list(EVENT, self.namespace)
        return [each for each in found.items if text(each, "reason") == reason]


def event(key: InstanceKey, kind: EventKind, **facts: Any) -> InstanceEvent:
    now = datetime.now(UTC)
    # AWS's times are whole seconds: of the second in which EC2 was asked, nobody can tell what came later.
    whole = {"time": now.replace(microsecond=0) + timedelta(seconds=1), "received_at": now} | facts
    place = {"account": key.account, "region": key.region, "instance_id": key.instance_id}
    return InstanceEvent(event_id=f"e-{uuid4()}", kind=kind, **place, **whole)


def state(key: InstanceKey, value: str, **facts: Any) -> InstanceEvent:
    return event(key, EventKind.STATE, state=InstanceState(value), **facts)


@pytest.fixture
async def temporal(deployment: Deployment) -> Client:
    return await temporal_of(deployment)


@asynccontextmanager
async def served(deployment: Deployment, kube: KubeApi, **settings: str) -> AsyncIterator[None]:
    await seed_cluster_api(kube)
    settings = {"PERDURE_INSTANCES_QUEUES": PLACE, **settings}
    async with (
        process(deployment, "worker", "--only", "instances", **settings),
        process(deployment, "watch", **settings),
    ):
        yield


async def test_an_instance_is_labelled_by_ec2_and_events_and_keeps_our_labels(
    deployment: Deployment, kube: KubeApi, temporal: Client, namespace: str
) -> None:
    cloud = Cloud(deployment, kube, temporal, namespace)
    async with served(deployment, kube):
        key = cloud.launch()
        name = await cloud.machine(key)
        # Nobody has sent an event: the AWSMachine has an instance, and EC2 was asked.
        await cloud.labelled(name, "running")

        cloud.ec2.stop_instances(InstanceIds=[key.instance_id])
        stopping, stopped = state(key, "stopping"), state(key, "stopped")
        taken = await cloud.hand_over(key, stopping, stopped)
        assert taken.outcomes == {stopping.key: Outcome.APPLIED, stopped.key: Outcome.APPLIED}
        assert (await cloud.labels(name))[STATE_LABEL] == "stopped"

        for kind in ("awsmachine", "machine"):
            command = await asyncio.to_thread(perdure, deployment, "why", kind, f"{namespace}/{name}", "-o", "json")
            output = Why.model_validate_json(command.stdout)
            assert (output.object, output.phase) == (key.lifecycle.path, "Stopped"), command.stderr

        edit = {"metadata": {"labels": {STATE_LABEL: "running"}}}
        await kube.patch(AWS_MACHINE, namespace, name, edit, field_manager="somebody")
        await cloud.labelled(name, "stopped")

        cloud.ec2.terminate_instances(InstanceIds=[key.instance_id])
        await cloud.hand_over(key, state(key, "terminated"))
        assert (await cloud.labels(name))[STATE_LABEL] == "terminated"
        assert (await cloud.why(key)).phase == "Gone"


@pytest.mark.slow
async def test_a_forged_event_is_reported_without_reaction_and_a_true_one_deletes(
    deployment: Deployment, kube: KubeApi, temporal: Client, namespace: str
) -> None:
    cloud = Cloud(deployment, kube, temporal, namespace)
    async with served(deployment, kube, PERDURE_INSTANCES_REACTIONS="terminated=delete-machine,spot=delete-machine"):
        key = cloud.launch()
        name = await cloud.machine(key)
        await cloud.labelled(name, "running")
        # An instance that is none of the Spot market's.
        await cloud.hand_over(key, event(key, EventKind.SPOT, action="terminate"))
        await eventually(lambda: cloud.events_of("EventRefuted"), "the refutation is told")
        await cloud.labelled(name, None, INTERRUPTION_LABEL)
        await kube.get(MACHINE, namespace, name)

        cloud.ec2.terminate_instances(InstanceIds=[key.instance_id])
        await cloud.hand_over(key, state(key, "terminated"))
        await eventually(lambda: _gone(kube, namespace, name), "the Machine is deleted")
        await eventually(lambda: cloud.events_of("InstanceTaken"), "the Event is recorded")


@pytest.mark.slow
async def test_a_bulk_query_finds_missed_events_and_labels_a_group_by_its_instances(
    deployment: Deployment, kube: KubeApi, temporal: Client, namespace: str
) -> None:
    cloud = Cloud(deployment, kube, temporal, namespace)
    # Another test's may have its next look minutes ahead.
    with suppress(RPCError):
        await temporal.get_workflow_handle(THE_SWEEP.workflow_id).terminate("begins anew")
    async with served(deployment, kube, PERDURE_SWEEP="5"):
        key = cloud.launch()
        name = await cloud.machine(key)
        await cloud.labelled(name, "running")
        cloud.ec2.stop_instances(InstanceIds=[key.instance_id])
        await cloud.labelled(name, "stopped")

        group = f"g-{uuid4().hex[:8]}"
        arn = await asyncio.to_thread(cloud.group, group)
        pool = {"metadata": {"name": group}, "spec": {"providerID": arn}}
        await kube.create(AWS_MACHINE_POOL, pool, namespace)

        async def in_service() -> bool:
            found = await kube.get(AWS_MACHINE_POOL, namespace, group)
            return text(found, "metadata", "labels", GROUP_STATE_LABEL) == "in-service"

        await eventually(in_service, "the group is labelled")


async def test_a_policy_handles_stops_only_of_instances_that_its_tags_select(
    deployment: Deployment, kube: KubeApi, temporal: Client, namespace: str
) -> None:
    cloud = Cloud(deployment, kube, temporal, namespace)
    policy = {
        "metadata": {"name": namespace},
        "spec": {
            "selector": {"namespaces": [namespace], "tags": {"env": "prod"}},
            "reactions": {"stopped": "delete-machine"},
        },
    }
    async with served(deployment, kube):
        await kube.create(INTERRUPTION_POLICY, policy)
        keys = {env: cloud.launch() for env in ("prod", "test")}
        for env, key in keys.items():
            cloud.ec2.create_tags(Resources=[key.instance_id], Tags=[{"Key": "env", "Value": env}])
        names = {env: await cloud.machine(key) for env, key in keys.items()}
        for env, key in keys.items():
            await cloud.labelled(names[env], "running")
            cloud.ec2.stop_instances(InstanceIds=[key.instance_id])
            await cloud.hand_over(key, state(key, "stopped"))
        await eventually(lambda: _gone(kube, namespace, names["prod"]), "the Machine that is selected is deleted")
        assert "InterruptionPolicy" not in (await cloud.why(keys["test"])).why
        await kube.get(MACHINE, namespace, names["test"])

        # A change of the policy is heard of without any event.
        wider = {"spec": {"selector": {"tags": None}}}
        await kube.patch(INTERRUPTION_POLICY, "", namespace, wider, field_manager="somebody")
        await eventually(lambda: _gone(kube, namespace, names["test"]), "the other Machine is deleted")
        await kube.delete(INTERRUPTION_POLICY, "", namespace)


async def test_a_policy_that_would_delete_a_machine_where_there_is_none_says_so_once(
    deployment: Deployment, kube: KubeApi, temporal: Client, namespace: str
) -> None:
    cloud = Cloud(deployment, kube, temporal, namespace)
    async with served(deployment, kube):
        spec = {"selector": {"namespaces": [namespace]}, "reactions": {"stopped": "delete-machine"}}
        await kube.create(INTERRUPTION_POLICY, {"metadata": {"name": namespace}, "spec": spec})
        key = cloud.launch()
        name = f"m-{uuid4().hex[:8]}"
        alone = {"instanceID": key.instance_id, "providerID": f"aws:///{REGION}a/{key.instance_id}"}
        await kube.create(AWS_MACHINE, {"metadata": {"name": name}, "spec": alone}, namespace)
        await cloud.labelled(name, "running")
        cloud.ec2.stop_instances(InstanceIds=[key.instance_id])
        for _ in range(2):
            await cloud.hand_over(key, state(key, "stopped"))
        await eventually(lambda: cloud.events_of("NoMachine"), "the missing Machine is reported")
        await cloud.hand_over(key, state(key, "stopped"))
        (message,) = await cloud.events_of("NoMachine")
        assert f"InterruptionPolicy {namespace}" in text(message, "message")
        assert (text(message, "involvedObject", "name"), message.get("count", 1)) == (name, 1)
        assert "has no Machine that Perdure could delete" in (await cloud.why(key)).why
        await kube.delete(INTERRUPTION_POLICY, "", namespace)


async def test_a_confirmed_stop_is_sent_once_despite_a_duplicate_and_a_failure(
    deployment: Deployment, kube: KubeApi, temporal: Client, namespace: str
) -> None:
    cloud = Cloud(deployment, kube, temporal, namespace)
    async with serving() as webhook, served(deployment, kube):
        webhook.answers = [web.Response(status=503)]
        channel = {"name": "chat", "url": webhook.url, "causes": ["stopped"]}
        spec = {"selector": {"namespaces": [namespace]}, "reactions": {"stopped": "cordon"}, "notify": [channel]}
        await kube.create(INTERRUPTION_POLICY, {"metadata": {"name": namespace}, "spec": spec})
        key = cloud.launch()
        name = await cloud.machine(key)
        await cloud.labelled(name, "running")
        await cloud.hand_over(key, state(key, "stopped"))  # forged: it runs
        cloud.ec2.stop_instances(InstanceIds=[key.instance_id])
        for _ in range(2):
            await cloud.hand_over(key, state(key, "stopped"))
        await eventually(lambda: len(webhook.bodies) >= 2, "it is sent again after the failure")
        await cloud.labelled(name, "stopped")
        await cloud.hand_over(key, state(key, "stopped"))
        assert {json.loads(each)["instance"] for each in webhook.bodies} == {key.instance_id}
        assert (len(webhook.bodies), len({each["Idempotency-Key"] for each in webhook.headers})) == (2, 1)
        history = await temporal.get_workflow_handle(key.workflow_id).fetch_history()
        assert CONFIDENTIAL not in history.to_json()
        await kube.delete(INTERRUPTION_POLICY, "", namespace)


class MachineDeployments:
    """Cluster API's controllers, as far as they keep the Machines of one MachineDeployment."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.kube, self.namespace = cloud.kube, cloud.namespace
        self.metadata: dict[str, Any] = {}
        self.ready = False  # whether the Nodes of new Machines are

    async def begin(self, replicas: int) -> None:
        status = {"replicas": replicas, "updatedReplicas": replicas}
        whole = {"metadata": {"name": "md"}, "spec": {"replicas": replicas}, "status": status}
        owner: Any = None
        for kind, spec in ((MACHINE_DEPLOYMENT, whole), (MACHINE_SET, {"metadata": {"name": "md-1"}})):
            owners = [owner] if owner else []
            made = await self.kube.create(
                kind, {**spec, "metadata": {**spec["metadata"], "ownerReferences": owners}}, self.namespace
            )
            named = {field: text(made, "metadata", field) for field in ("name", "uid")}
            owner = {"apiVersion": kind.api_version, "kind": kind.name, **named, "controller": True}
        await self.kube.patch(MACHINE_DEPLOYMENT, self.namespace, "md", {"status": status}, subresource="status")
        labels = {DEPLOYMENT_LABEL: "md", CLUSTER_LABEL: "c1"}
        self.metadata = {"labels": labels, "ownerReferences": [owner], "finalizers": ["example.com/machine"]}

    async def run(self) -> None:
        while True:
            await self._turn()
            await asyncio.sleep(0.2)

    async def _turn(self) -> None:
        wanted = (await self.deployment())["spec"]["replicas"]
        found = (await self.kube.list(MACHINE, self.namespace, label_selector=f"{DEPLOYMENT_LABEL}=md")).items
        going = [each for each in found if text(each, "metadata", "deletionTimestamp")]
        if len(found) < wanted:
            meta = {"name": f"new-{uuid4().hex[:8]}", **self.metadata}
            await self.kube.create(MACHINE, {"metadata": meta, "spec": {"clusterName": "c1"}}, self.namespace)
        first = [each for each in found if DELETE_FIRST_ANNOTATION in mapping(each, "metadata", "annotations")]
        order = sorted(found, key=lambda each: (each not in going, each not in first))
        for each in order[: max(0, len(found) - wanted)]:
            if each not in going:
                await self.kube.delete(MACHINE, self.namespace, text(each, "metadata", "name"))
        for each in going:
            with suppress(Absent):
                patch = {"metadata": {"finalizers": None}}
                await self.kube.patch(
                    MACHINE, self.namespace, text(each, "metadata", "name"), patch, field_manager="capi"
                )
        for each in found:
            if self.ready and not sequence(each, "status", "conditions"):
                status = {"conditions": [{"type": "NodeReady", "status": "True"}]}
                with suppress(Absent):
                    await self.kube.patch(
                        MACHINE,
                        self.namespace,
                        text(each, "metadata", "name"),
                        {"status": status},
                        subresource="status",
                        field_manager="capi",
                    )

    async def deployment(self) -> Any:
        return await self.kube.get(MACHINE_DEPLOYMENT, self.namespace, "md")

    async def scaled(self, replicas: int, *, marked: bool) -> bool:
        found = await self.deployment()
        mark = REPLACING_ANNOTATION in mapping(found, "metadata", "annotations")
        return (found["spec"]["replicas"], mark) == (replicas, marked)

    async def names(self) -> set[str]:
        found = await self.kube.list(MACHINE, self.namespace, label_selector=f"{DEPLOYMENT_LABEL}=md")
        return {text(each, "metadata", "name") for each in found.items}


@asynccontextmanager
async def keeping(cloud: Cloud, replicas: int) -> AsyncIterator[tuple[MachineDeployments, dict[str, InstanceKey]]]:
    """A MachineDeployment whose Machines have instances, and a policy that replaces them before it deletes them."""
    capi = MachineDeployments(cloud)
    await capi.begin(replicas)
    keys = [cloud.launch() for _ in range(replicas)]
    machines = {await cloud.machine(key, **capi.metadata): key for key in keys}
    spec = {
        "selector": {"namespaces": [cloud.namespace]},
        "reactions": {"ending": "delete-machine"},
        "replaceFirstSeconds": {"ending": 600},
    }
    await cloud.kube.create(INTERRUPTION_POLICY, {"metadata": {"name": cloud.namespace}, "spec": spec})
    running = asyncio.create_task(capi.run())
    try:
        made = datetime.now(UTC)
        for name in machines:
            await cloud.labelled(name, "running")
        # What is this much older than the mark is no replacement, however clocks differ.
        await eventually(lambda: datetime.now(UTC) - made > CLOCKS_DIFFER + timedelta(seconds=1), "they are older")
        yield capi, machines
    finally:
        running.cancel()
        await cloud.kube.delete(INTERRUPTION_POLICY, "", cloud.namespace)


async def retire(deployment: Deployment, cloud: Cloud, key: InstanceKey, event_id: str = "", **notice: str) -> str:
    """Have AWS retire an instance in an hour, or say so no more; returns the event."""
    start = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    code = "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED"
    body = {"kind": "health", "account": key.account, "region": key.region, "instances": [key.instance_id]}
    whole = {**body, "code": code, "start": start.timestamp(), "event": event_id, **notice}
    async with ClientSession() as session:
        url = f"{deployment.env()['AWS_ENDPOINT_URL']}/perdure/notices"
        async with session.post(url, json=whole) as answer:
            answered = await answer.json()
    name: str = answered["event"]
    reported = HealthNotice(code=code, arn=f"arn:{name}", start=start, updated=datetime.now(UTC), **notice)
    await cloud.hand_over(key, event(key, EventKind.HEALTH_SCHEDULED, health=reported))
    return name


async def test_a_machine_is_deleted_after_its_replacement_is_ready_despite_crashes(
    deployment: Deployment, kube: KubeApi, temporal: Client, namespace: str
) -> None:
    cloud = Cloud(deployment, kube, temporal, namespace)
    await seed_cluster_api(kube)
    settings = {"PERDURE_INSTANCES_QUEUES": PLACE}
    async with (
        process(deployment, "watch", **settings),
        process(deployment, "worker", "--only", "instances", **settings) as first,
        keeping(cloud, 3) as (capi, machines),
    ):
        name, *others = sorted(machines)
        key = machines[name]
        await retire(deployment, cloud, key)
        await eventually(lambda: capi.scaled(4, marked=True), "a replacement is asked for")
        first.kill()
        await first.wait()
        async with process(deployment, "worker", "--only", "instances", **settings):

            async def waits() -> bool:
                return "for the replacement of Machine" in (await cloud.why(key)).why

            await eventually(waits, "the replacement is waited for")
            assert {name, *others} < await capi.names()
            # Whatever the workflow knew is gone as well.
            await temporal.get_workflow_handle(key.workflow_id).terminate("lost")
            capi.ready = True
            await eventually(lambda: capi.scaled(3, marked=False), "the replacement is not asked for any more")
            await eventually(lambda: _gone(kube, namespace, name), "the Machine is deleted")
            # The Event is written after the scaling, by the worker that still runs.
            await eventually(
                lambda: cloud.events_of("ReplacementEnded"), "the end is reported on the MachineDeployment"
            )
        left = await capi.names()
        assert (len(left), left >= set(others)) == (3, True)
        (ended,) = await cloud.events_of("ReplacementEnded")
        assert text(ended, "involvedObject", "kind") == "MachineDeployment"
        (new,) = left - set(others)
        assert text(ended, "message") == f"scaled from 4 to 3: Machine {name} is deleted, replaced by {new}"


async def test_a_withdrawn_retirement_gives_the_replacement_up_and_keeps_the_machine(
    deployment: Deployment, kube: KubeApi, temporal: Client, namespace: str
) -> None:
    cloud = Cloud(deployment, kube, temporal, namespace)
    async with served(deployment, kube), keeping(cloud, 2) as (capi, machines):
        name = min(machines)
        retirement = await retire(deployment, cloud, machines[name])
        await eventually(lambda: capi.scaled(3, marked=True), "a replacement is asked for")

        async def made() -> bool:
            return len(await capi.names()) == 3

        await eventually(made, "the replacement is made")
        await eventually(lambda: cloud.events_of("ReplacementAsked"), "it is told on the MachineDeployment")
        await retire(deployment, cloud, machines[name], retirement, status="closed")
        await eventually(lambda: capi.scaled(2, marked=False), "the replacement is not asked for any more")

        async def as_before() -> bool:
            return await capi.names() == set(machines)

        await eventually(as_before, "the replacement is deleted, and no other")
        stored = await kube.get(MACHINE, namespace, name)
        assert DELETE_FIRST_ANNOTATION not in mapping(stored, "metadata", "annotations")


async def _gone(kube: KubeApi, namespace: str, name: str) -> bool:
    try:
        await kube.get(MACHINE, namespace, name)
    except Absent:
        return True
    return False
