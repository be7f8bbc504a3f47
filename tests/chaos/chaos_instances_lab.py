"""An installation whose instances' events are broken into: a fleet on the emulator, and the consumer beside the worker.

Machines are made as Cluster API and its AWS provider make them, with finalizers. Both are played: a Machine that is
being deleted is drained at once, and its instance ended, unless Auto Scaling holds it; a MachineSet makes and deletes
Machines until there are as many as its MachineDeployment wants. Other instances are Nodes of Perdure's own cluster,
each with a Pod, and without any object of Cluster API. Cases follow one another on one installation; each has an
instance of its own, and one that nothing happens to stands beside them all.

Looks in bulk would hide what was lost, so there are none but where a case is about them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import httpx
from botocore.exceptions import BotoCoreError, ClientError
from chaos_claims_oracle import at
from chaos_cluster import until
from chaos_installation import Armed, Installation, Process
from chaos_worker_log import WorkerLog

from domain.instances.constants import (
    DELETE_FIRST_ANNOTATION,
    DEPLOYMENT_LABEL,
    GROUP_STATE_LABEL,
    INTERRUPTION_LABEL,
    NODE_GROUP_LABELS,
    REPLACING_ANNOTATION,
    STATE_LABEL,
)
from domain.instances.served_queues import Place
from localcloud import environment, services
from localcloud.aws.contract import PAYER_ACCOUNT_ID, FaultKind
from localcloud.aws.control import Emulator
from localcloud.instance_groups import image_of, make_hooked_group

SETTLE_SECONDS = 200.0
# Within which a killed consumer's messages are shown again.
VISIBILITY_SECONDS = 10
HOOK_SECONDS = 60
PLACE = Place(account=PAYER_ACCOUNT_ID, region=services.REGION)
SETTINGS = {
    "PERDURE_DRAIN": "2",
    "PERDURE_INSTANCES_NODES": "true",
    "PERDURE_INSTANCES_QUEUES": f"{PLACE.account}/{PLACE.region}",
    "PERDURE_INSTANCES_REACTIONS": "terminated=delete-machine,spot=delete-machine,terminating-hook=delete-machine",
    "PERDURE_SWEEP": "3600",
    "PERDURE_EVENTS_VISIBILITY": str(VISIBILITY_SECONDS),
}
OFTEN = {"PERDURE_SWEEP": "3"}
NAMESPACE = "fleet"
CLUSTER_API = "cluster.x-k8s.io/v1beta1"
_HOUR, _FORTNIGHT = 3600.0, 14 * 86400.0
# Which of the policies below applies to an object.
POLICY_LABEL = "chaos"
REPLACED_FIRST, NODE_ONLY = "replaced-first", "node-only"
POLICIES: dict[str, dict[str, Any]] = {
    REPLACED_FIRST: {"reactions": {"ending": "delete-machine"}, "replaceFirstSeconds": {"ending": 3000}},
    NODE_ONLY: {"reactions": {"spot": "drain", "terminatingHook": "drain", "ending": "terminate-instance"}},
}
_READY_NODE = {"type": "NodeReady", "status": "True"}


@dataclass
class Life:
    """One instance with its machine, and its expected labels."""

    name: str  # of the Machine and the AWSMachine, or of the Node; also of the MachineDeployment and the Pod
    instance: str  # EC2's id
    group: str = ""  # its Auto Scaling group
    policy: str = ""  # the InterruptionPolicy that is meant for it
    state: str = "running"  # the label of its state
    interruption: str | None = ""  # the label of its interruption; None for any
    kept: bool = True  # whether the Machine, or the Pod on the Node, stays
    ended: bool = False  # whether it is known to have gone
    replacement_ready: bool = True  # whether the Node of the Machine that replaces it becomes ready
    awaits_replacement: bool = False  # whether its MachineDeployment is scaled up meanwhile
    retires_at: float = 0.0  # the date of its retirement, in seconds since the epoch

    @property
    def has_node(self) -> bool:
        """Whether it is a Node without a Machine."""
        return self.policy == NODE_ONLY

    @property
    def is_replaced(self) -> bool:
        """Whether a MachineDeployment owns its Machine."""
        return self.policy == REPLACED_FIRST


class InstancesLab(Installation):
    """The installation."""

    quiet_seconds = 0.7

    def __init__(self, state: Path) -> None:
        with environment.restored():
            os.environ.update(SETTINGS)
            super().__init__(state, services.SERVERS, SETTINGS, ("worker", "--only", "instances"), reserve=True)
        self.events = Process(self.deployment, ("events",), SETTINGS, reserve=("starters.events.main",))
        self._bulk = Process(self.deployment, ("worker", "--only", "instances"), SETTINGS | self.through_proxy | OFTEN)
        self._env = self.deployment.env()
        self.emulator = Emulator(self._env["AWS_ENDPOINT_URL"])
        self._clients: dict[str, Any] = {}
        self.lives: dict[str, Life] = {}
        self._serial = 0
        self._log = WorkerLog(self.worker.log)
        self.cluster.create("namespaces", "", {"metadata": {"name": NAMESPACE}})
        self.cluster.create("serviceaccounts", NAMESPACE, {"metadata": {"name": "default"}})
        for name, spec in POLICIES.items():
            whole = {"selector": {"labels": {POLICY_LABEL: name}}, **spec}
            policy = _object("perdure.dev/v1alpha1", "InterruptionPolicy", {"name": name}, whole)
            self.cluster.create("interruptionpolicies", "", policy)
        self.start()

    def start(self) -> None:
        """Start all three, and wait for the queue and its rules."""
        self.events.start()
        super().start()
        try:
            self.events.await_ready()
            until(self._heard, "the place has its queue and rules", 60)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop all of it."""
        self.events.stop()
        self._bulk.stop()
        super().close()
        for client in (self.emulator, *self._clients.values()):
            client.close()

    def fill(self) -> None:
        """The instance that nothing happens to, and the ledger of disruptions, which the first that ends opens."""
        self.launch()
        self.end_one(self.launch())
        self.settle()

    # --- what happens to instances ---

    def launch(self, *, spot: bool = False, grouped: bool = False, policy: str = "") -> Life:
        """A new instance with its Machine and AWSMachine, or with its Node."""
        self._serial += 1
        name = f"m-{self._serial}"
        group = name if grouped else ""
        instance, arn = self._grouped(group) if grouped else (self._launched(spot=spot), "")
        life = self.lives[name] = Life(name, instance, group, policy)
        if life.has_node:
            self._join(life)
        else:
            if grouped:
                self._make_pool(life, arn)
            self._make_machine(life, self._deploy(life) if life.is_replaced else None)
        return life

    def _join(self, life: Life) -> None:
        """Its Node, as its kubelet makes it, and a Pod on it."""
        spec = {"providerID": _provider_id(life)}
        status = {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}
        # Each is a node group of its own: one that has ended leaves no room in it for another.
        labels = {POLICY_LABEL: life.policy, NODE_GROUP_LABELS[0]: life.name}
        metadata = {"name": life.name, "labels": labels}
        self.cluster.create("nodes", "", {"metadata": metadata, "spec": spec, "status": status})
        containers = [{"name": "c", "image": "none"}]
        pod = {"nodeName": life.name, "terminationGracePeriodSeconds": 0, "containers": containers}
        self.cluster.create("pods", NAMESPACE, {"metadata": {"name": life.name}, "spec": pod})

    def _make_machine(self, life: Life, owner: dict[str, Any] | None) -> None:
        self._create_machine(life.name, owner, {"providerID": _provider_id(life)}, life.policy)
        machine = self.cluster.get("machines", NAMESPACE, life.name)
        assert machine is not None
        metadata = {
            "name": life.name,
            "finalizers": ["awsmachine.infrastructure.cluster.x-k8s.io"],
            "ownerReferences": [_reference(machine)],
        }
        infrastructure = "infrastructure.cluster.x-k8s.io/v1beta2"
        spec = {"instanceID": life.instance, "providerID": _provider_id(life)}
        self.cluster.create("awsmachines", NAMESPACE, _object(infrastructure, "AWSMachine", metadata, spec))

    def _create_machine(self, name: str, owner: dict[str, Any] | None, spec: dict[str, Any], policy: str) -> None:
        labels = {POLICY_LABEL: policy, **({DEPLOYMENT_LABEL: owner["metadata"]["name"]} if owner else {})}
        owners = {"ownerReferences": [_reference(owner)]} if owner else {}
        metadata = {"finalizers": ["machine.cluster.x-k8s.io"], "name": name, "labels": labels, **owners}
        self.cluster.create(
            "machines", NAMESPACE, _object(CLUSTER_API, "Machine", metadata, {"clusterName": NAMESPACE, **spec})
        )

    def _deploy(self, life: Life) -> dict[str, Any]:
        """A MachineDeployment of one Machine; its MachineSet, which has its name."""
        owners: dict[str, Any] = {}
        found: dict[str, Any] | None = None
        for plural, kind in (("machinedeployments", "MachineDeployment"), ("machinesets", "MachineSet")):
            made = _object(CLUSTER_API, kind, {"name": life.name, **owners}, {"replicas": 1, "clusterName": NAMESPACE})
            self.cluster.create(plural, NAMESPACE, made)
            found = self.cluster.get(plural, NAMESPACE, life.name)
            assert found is not None
            owners = {"ownerReferences": [_reference(found)]}
        status = {"status": {"replicas": 1, "updatedReplicas": 1}}
        self.cluster.patch("machinedeployments", NAMESPACE, life.name, status, "status")
        assert found is not None
        return found

    def stop_one(self, life: Life) -> None:
        """Somebody stops it."""
        life.state = "stopped"
        self.client("ec2").stop_instances(InstanceIds=[life.instance])

    def end_one(self, life: Life) -> None:
        """Somebody terminates it: a Machine without an instance is deleted."""
        life.state, life.kept, life.ended = "terminated", False, True
        self.client("ec2").terminate_instances(InstanceIds=[life.instance])

    def take_back(self, life: Life) -> None:
        """Spot announces that it takes it in two minutes."""
        life.state, life.interruption, life.kept = "terminated", "spot-terminate", False
        self.emulator.announce("spot", PLACE.account, PLACE.region, life.instance)

    def shrink(self, life: Life) -> None:
        """Its group gives it up; a hook holds it."""
        life.state, life.kept = "terminated", False
        self.client("autoscaling").set_desired_capacity(AutoScalingGroupName=life.group, DesiredCapacity=0)

    def retire(self, life: Life) -> str:
        """AWS will retire it in an hour, and its policy reacts to that; the event's name."""
        event = self.schedule(life, _HOUR)
        life.state, life.kept = "terminated", False
        return event

    def schedule(self, life: Life, seconds: float = _FORTNIGHT) -> str:
        """AWS will retire it, by default in two weeks; the event's name."""
        life.interruption, life.retires_at = "scheduled-retirement", time.time() + seconds
        where = (PLACE.account, PLACE.region, life.instance)
        return self.emulator.announce("health", *where, start=life.retires_at).event

    def withdraw(self, life: Life, event: str) -> None:
        """AWS will not."""
        life.interruption = ""
        over = {"event": event, "status": "closed", "entity_status": "RESOLVED", "start": life.retires_at}
        self.emulator.announce("health", PLACE.account, PLACE.region, life.instance, **over)

    def look_often(self) -> None:
        """From now on the worker looks at all instances every few seconds, and no older workflow holds it back."""
        self.worker.kill()
        self.terminate_all()
        self._bulk.start()
        self._bulk.await_ready()

    def look_seldom(self) -> None:
        """As before."""
        self._bulk.stop()
        self.terminate_all()
        self.worker.start()
        self.worker.await_ready()

    # --- breaking ---

    def disturb(self, service: str, action: str, kind: FaultKind, count: int = 1, **more: object) -> Armed:
        """Break a call of AWS when it comes next."""
        fault = self.emulator.fault(service, action, kind=kind, count=count, **more)

        def struck() -> bool:
            return any(each.id == fault.id and each.hits for each in self.emulator.faults())

        return Armed(f"{service} {action}", struck)

    def lift(self) -> None:
        """Break nothing any more."""
        self.emulator.clear()
        super().lift()

    # --- settling ---

    def settle(self, seconds: float = SETTLE_SECONDS) -> float:
        """Wait until everything agrees; how many seconds it took."""
        return self.agree(seconds)

    def forget(self) -> None:
        """Begin a new case: nothing is left of earlier ones but the instance that nothing happens to."""
        self._log.forget()
        for life in [each for each in self.lives.values() if each.name != "m-1"]:
            if life.has_node:
                self.cluster.delete("pods", NAMESPACE, life.name)
                self.cluster.delete("nodes", "", life.name)
            for plural in ("machinedeployments", "machinesets") if life.is_replaced else ():
                self.cluster.delete(plural, NAMESPACE, life.name)
            for plural in () if life.has_node else ("machines", "awsmachines"):
                self._remove(plural, life.name)
            if life.group and not life.has_node:
                self.cluster.delete("awsmachinepools", NAMESPACE, life.group)
            del self.lives[life.name]
        for name in self._by_name("machines").keys() - self.lives.keys():
            self._remove("machines", name)

    def _remove(self, plural: str, name: str) -> None:
        self.cluster.patch(plural, NAMESPACE, name, {"metadata": {"finalizers": None}})
        self.cluster.delete(plural, NAMESPACE, name)

    def _by_name(self, plural: str, namespace: str = NAMESPACE) -> dict[str, dict[str, Any]]:
        return {each["metadata"]["name"]: each for each in self.cluster.list(plural, namespace)}

    def play(self) -> None:
        """Cluster API and its provider: drain what is being deleted, and end its instance.

        Who owns a Node's instance ends it once it is empty, unless Auto Scaling or Perdure does.
        """
        with suppress(httpx.HTTPError, AssertionError, BotoCoreError, ClientError):
            machines = self._by_name("machines")
            for name, machine in machines.items():
                if at(machine, "metadata", "deletionTimestamp"):
                    self.cluster.patch("machines", NAMESPACE, name, {"metadata": {"finalizers": None}})
            pods = self._by_name("pods")
            for life in self.lives.values():
                if life.is_replaced:
                    self._keep_replicas(life)
                if life.name not in (pods if life.has_node else machines) and not life.ended and not life.group:
                    self.client("ec2").terminate_instances(InstanceIds=[life.instance])
                    life.ended = True

    def _keep_replicas(self, life: Life) -> None:
        """Make or delete one Machine if there are not as many as are wanted; the Nodes of new ones become ready.

        The Machines are read after the replicas: Perdure annotates first, and lowers the replicas then.
        """
        deployment = self.cluster.get("machinedeployments", NAMESPACE, life.name)
        machine_set = self.cluster.get("machinesets", NAMESPACE, life.name)
        assert deployment is not None
        found = [each for each in self._by_name("machines").values() if _deployed(each, life)]
        stays = [each for each in found if not at(each, "metadata", "deletionTimestamp")]
        wanted = deployment["spec"]["replicas"]
        if len(found) < wanted:
            self._serial += 1
            self._create_machine(f"{life.name}-{self._serial}", machine_set, {}, life.policy)
        elif len(found) > wanted and len(stays) == len(found):
            first = min(stays, key=lambda each: not _goes_first(each))
            self.cluster.delete("machines", NAMESPACE, first["metadata"]["name"])
        for each in stays if life.replacement_ready else ():
            name = each["metadata"]["name"]
            if name != life.name and not at(each, "status", "conditions"):
                status = {"status": {"conditions": [_READY_NODE]}}
                self.cluster.patch("machines", NAMESPACE, name, status, "status")

    def tells_state(self, life: Life) -> bool:
        """Whether its label is its state's already."""
        with suppress(httpx.HTTPError, AssertionError):
            where = ("nodes", "") if life.has_node else ("awsmachines", NAMESPACE)
            machine = self.cluster.get(*where, life.name)
            return (at(machine, "metadata", "labels") or {}).get(STATE_LABEL) == life.state
        return False

    def is_going(self, life: Life) -> bool:
        """Whether its Machine is gone or being deleted."""
        with suppress(httpx.HTTPError, AssertionError):
            machine = self.cluster.get("machines", NAMESPACE, life.name)
            return machine is None or bool(at(machine, "metadata", "deletionTimestamp"))
        return False

    def violations(self) -> list[str]:
        """See `Installation`; what the world does meanwhile has been done."""
        self.play()
        return [*self._labels(), *self._messages(), *self._workflows(), *self._log.complaints()]

    def _labels(self) -> Iterator[str]:
        found = self._by_name("awsmachines") | self._by_name("nodes", "")
        machines, pods = self._by_name("machines"), self._by_name("pods")
        for life in self.lives.values():
            labels = at(found[life.name], "metadata", "labels") or {}
            if labels.get(STATE_LABEL) != life.state:
                yield f"{life.name} is labelled {labels.get(STATE_LABEL)}, it is {life.state}"
            if life.interruption is not None and labels.get(INTERRUPTION_LABEL, "") != life.interruption:
                yield f"{life.name}: interruption {labels.get(INTERRUPTION_LABEL)}, not {life.interruption}"
            if (life.name in (pods if life.has_node else machines)) is not life.kept:
                yield f"{'Pod' if life.has_node else 'Machine'} {life.name} is {'gone' if life.kept else 'there'}"
            if life.has_node and bool(at(found[life.name], "spec", "unschedulable")) is life.kept:
                yield f"Node {life.name} is {'cordoned' if life.kept else 'not cordoned'}"
            if life.is_replaced:
                yield from self._replicas(life, machines.values())
        for pool in self.cluster.list("awsmachinepools", NAMESPACE):
            life = self.lives[pool["metadata"]["name"]]
            wanted = "in-service" if life.state == "running" else None
            label = (at(pool, "metadata", "labels") or {}).get(GROUP_STATE_LABEL)
            if label != wanted:
                yield f"pool {life.group} is labelled {label}, not {wanted}"

    def _replicas(self, life: Life, machines: Iterable[dict[str, Any]]) -> Iterator[str]:
        """One Machine is wanted and there, and no trace of a replacement, unless one is waited for."""
        deployment = self.cluster.get("machinedeployments", NAMESPACE, life.name)
        wanted = 2 if life.awaits_replacement else 1
        if at(deployment, "spec", "replicas") != wanted:
            yield f"MachineDeployment {life.name} has {at(deployment, 'spec', 'replicas')} replicas, not {wanted}"
        if (REPLACING_ANNOTATION in (at(deployment, "metadata", "annotations") or {})) is not life.awaits_replacement:
            yield f"MachineDeployment {life.name} is {'not ' if life.awaits_replacement else ''}marked"
        found = [each for each in machines if _deployed(each, life)]
        if len(found) != wanted:
            yield f"MachineDeployment {life.name} has {len(found)} Machines, not {wanted}"
        if any(_goes_first(each) for each in found) is not life.awaits_replacement:
            yield f"{'no' if life.awaits_replacement else 'a'} Machine of {life.name} is annotated to be deleted first"

    def _messages(self) -> Iterator[str]:
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        for queue in (PLACE.queue, PLACE.dead_letters):
            url = self.client("sqs").get_queue_url(QueueName=queue)["QueueUrl"]
            found = self.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
            if any(int(number) for number in found.values()):
                yield f"{queue} still holds {found}"

    def _workflows(self) -> Iterator[str]:
        for id_, phase in self.workflows.running().items():
            if phase in ("Bug", "Stalled"):
                yield f"phase {phase}: {id_}"
        yield from (f"ended badly: {id_}" for id_ in self.workflows.broken())

    def story(self) -> str:
        """What each lifecycle says about itself."""
        reported = [self.command("list", "ec2instance").stdout.decode()]
        for life in list(self.lives.values())[-2:]:
            where = f"{PLACE.account}/{PLACE.region}/{life.instance}"
            reported.append(self.command("why", "ec2instance", where).stdout.decode())
        return "\n".join(reported)

    # --- AWS ---

    def client(self, service: str) -> Any:
        """A client of the account."""
        if service not in self._clients:
            self._clients[service] = boto3.client(
                service,  # type: ignore[call-overload]
                region_name=PLACE.region,
                endpoint_url=self._env["AWS_ENDPOINT_URL"],
                aws_access_key_id=self._env["AWS_ACCESS_KEY_ID"],
                aws_secret_access_key=self._env["AWS_SECRET_ACCESS_KEY"],
            )
        return self._clients[service]

    def _heard(self) -> bool:
        with suppress(ClientError):
            url = self.client("sqs").get_queue_url(QueueName=PLACE.queue)["QueueUrl"]
            arn = self.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
            rules = self.client("events").list_rule_names_by_target(TargetArn=arn["Attributes"]["QueueArn"])
            return len(rules["RuleNames"]) == 3
        return False

    def _launched(self, *, spot: bool) -> str:
        market = {"InstanceMarketOptions": {"MarketType": "spot"}} if spot else {}
        request = {"ImageId": image_of(self.client("ec2")), "InstanceType": "t3.micro", "MinCount": 1, "MaxCount": 1}
        return str(self.client("ec2").run_instances(**request, **market)["Instances"][0]["InstanceId"])

    def _grouped(self, name: str) -> tuple[str, str]:
        group = make_hooked_group(
            self.client, name, zone=f"{PLACE.region}a", instance_type="t3.micro", hook_seconds=HOOK_SECONDS
        )
        return str(group["Instances"][0]["InstanceId"]), str(group["AutoScalingGroupARN"])

    def _make_pool(self, life: Life, arn: str) -> None:
        spec = {"providerID": arn, "minSize": 0, "maxSize": 1}
        infrastructure = "infrastructure.cluster.x-k8s.io/v1beta2"
        pool = _object(infrastructure, "AWSMachinePool", {"name": life.group}, spec)
        self.cluster.create("awsmachinepools", NAMESPACE, pool)


def _object(api_version: str, kind: str, metadata: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def _provider_id(life: Life) -> str:
    return f"aws:///{PLACE.region}a/{life.instance}"


def _reference(owner: dict[str, Any]) -> dict[str, Any]:
    named = {field: owner["metadata"][field] for field in ("name", "uid")}
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], **named, "controller": True}


def _deployed(machine: dict[str, Any], life: Life) -> bool:
    """Whether it is a Machine of the instance's MachineDeployment."""
    return (at(machine, "metadata", "labels") or {}).get(DEPLOYMENT_LABEL) == life.name


def _goes_first(machine: dict[str, Any]) -> bool:
    """Whether a MachineSet deletes it before others."""
    return DELETE_FIRST_ANNOTATION in (at(machine, "metadata", "annotations") or {})
