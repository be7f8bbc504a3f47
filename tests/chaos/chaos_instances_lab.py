"""An installation whose instances' events are broken into: a fleet on the emulator, and the consumer beside the worker.

Machines are made as Cluster API and its AWS provider make them, with finalizers. Both are played: a Machine that is
being deleted is drained at once, and its instance ended, unless Auto Scaling holds it. Cases follow one another on one
installation; each has an instance of its own, and one that nothing happens to stands beside them all.

Looks in bulk would hide what was lost, so there are none but where a case is about them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
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

from domain.instances.constants import GROUP_STATE_LABEL, INTERRUPTION_LABEL, STATE_LABEL
from domain.instances.places import Place
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
    "PERDURE_INSTANCES_QUEUES": f"{PLACE.account}/{PLACE.region}",
    "PERDURE_INSTANCES_REACTIONS": "terminated=delete-machine,spot=delete-machine,terminating-hook=delete-machine",
    "PERDURE_SWEEP": "3600",
    "PERDURE_EVENTS_VISIBILITY": str(VISIBILITY_SECONDS),
}
OFTEN = {"PERDURE_SWEEP": "3"}
NAMESPACE = "fleet"
_FORTNIGHT = 14 * 86400.0


@dataclass
class Life:
    """One instance with its machine, and what its labels should come to.

    `interruption` None: whatever it says. `kept`: whether the Machine stays. `ended`: whether it is known to have gone.
    """

    name: str
    instance: str
    group: str = ""
    state: str = "running"
    interruption: str | None = ""
    kept: bool = True
    ended: bool = False


class InstancesLab(Installation):
    """The installation."""

    quiet_seconds = 0.7

    def __init__(self, state: Path) -> None:
        with environment.kept():
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

    def launch(self, *, spot: bool = False, grouped: bool = False) -> Life:
        """A new instance with its Machine and AWSMachine."""
        self._serial += 1
        name = f"m-{self._serial}"
        group = name if grouped else ""
        instance = self._grouped(group) if grouped else self._launched(spot=spot)
        owner = {"finalizers": ["machine.cluster.x-k8s.io"], "name": name}
        spec = {"clusterName": NAMESPACE, "providerID": f"aws:///{PLACE.region}a/{instance}"}
        self.cluster.create("machines", NAMESPACE, _object("cluster.x-k8s.io/v1beta1", "Machine", owner, spec))
        machine = self.cluster.get("machines", NAMESPACE, name)
        assert machine is not None
        reference = {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine", "name": name}
        metadata = {
            "name": name,
            "finalizers": ["awsmachine.infrastructure.cluster.x-k8s.io"],
            "ownerReferences": [{**reference, "uid": machine["metadata"]["uid"]}],
        }
        infrastructure = "infrastructure.cluster.x-k8s.io/v1beta2"
        spec = {"instanceID": instance, "providerID": spec["providerID"]}
        self.cluster.create("awsmachines", NAMESPACE, _object(infrastructure, "AWSMachine", metadata, spec))
        life = self.lives[name] = Life(name, instance, group)
        return life

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

    def schedule(self, life: Life) -> str:
        """AWS will retire it in two weeks; the event's name."""
        life.interruption = "scheduled-retirement"
        start = time.time() + _FORTNIGHT
        return self.emulator.announce("health", PLACE.account, PLACE.region, life.instance, start=start).event

    def withdraw(self, life: Life, event: str) -> None:
        """AWS will not."""
        life.interruption = ""
        over = {"event": event, "status": "closed", "entity_status": "RESOLVED", "start": time.time() + _FORTNIGHT}
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
            for plural in ("machines", "awsmachines"):
                self.cluster.patch(plural, NAMESPACE, life.name, {"metadata": {"finalizers": None}})
                self.cluster.delete(plural, NAMESPACE, life.name)
            if life.group:
                self.cluster.delete("awsmachinepools", NAMESPACE, life.group)
            del self.lives[life.name]

    def play(self) -> None:
        """Cluster API and its provider: drain what is being deleted, and end its instance."""
        with suppress(httpx.HTTPError, AssertionError, BotoCoreError, ClientError):
            machines = {each["metadata"]["name"]: each for each in self.cluster.list("machines", NAMESPACE)}
            for life in self.lives.values():
                machine = machines.get(life.name)
                if machine is not None and at(machine, "metadata", "deletionTimestamp"):
                    self.cluster.patch("machines", NAMESPACE, life.name, {"metadata": {"finalizers": None}})
                elif machine is None and not life.ended and not life.group:
                    self.client("ec2").terminate_instances(InstanceIds=[life.instance])
                    life.ended = True

    def tells_state(self, life: Life) -> bool:
        """Whether its label is its state's already."""
        with suppress(httpx.HTTPError, AssertionError):
            machine = self.cluster.get("awsmachines", NAMESPACE, life.name)
            return (at(machine, "metadata", "labels") or {}).get(STATE_LABEL) == life.state
        return False

    def violations(self) -> list[str]:
        """See `Installation`; what the world does meanwhile has been done."""
        self.play()
        return [*self._labels(), *self._messages(), *self._workflows(), *self._log.complaints()]

    def _labels(self) -> Iterator[str]:
        found = {each["metadata"]["name"]: each for each in self.cluster.list("awsmachines", NAMESPACE)}
        machines = {each["metadata"]["name"] for each in self.cluster.list("machines", NAMESPACE)}
        for life in self.lives.values():
            labels = at(found[life.name], "metadata", "labels") or {}
            if labels.get(STATE_LABEL) != life.state:
                yield f"{life.name} is labelled {labels.get(STATE_LABEL)}, it is {life.state}"
            if life.interruption is not None and labels.get(INTERRUPTION_LABEL, "") != life.interruption:
                yield f"{life.name}: interruption {labels.get(INTERRUPTION_LABEL)}, not {life.interruption}"
            if (life.name in machines) is not life.kept:
                yield f"Machine {life.name} is {'gone' if life.kept else 'there'}"
        for pool in self.cluster.list("awsmachinepools", NAMESPACE):
            life = self.lives[pool["metadata"]["name"]]
            wanted = "in-service" if life.state == "running" else None
            label = (at(pool, "metadata", "labels") or {}).get(GROUP_STATE_LABEL)
            if label != wanted:
                yield f"pool {life.group} is labelled {label}, not {wanted}"

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
        told = [self.command("list", "ec2instance").stdout.decode()]
        for life in list(self.lives.values())[-2:]:
            where = f"{PLACE.account}/{PLACE.region}/{life.instance}"
            told.append(self.command("why", "ec2instance", where).stdout.decode())
        return "\n".join(told)

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
        asked = {"ImageId": image_of(self.client("ec2")), "InstanceType": "t3.micro", "MinCount": 1, "MaxCount": 1}
        return str(self.client("ec2").run_instances(**asked, **market)["Instances"][0]["InstanceId"])

    def _grouped(self, name: str) -> str:
        group = make_hooked_group(
            self.client, name, zone=f"{PLACE.region}a", instance_type="t3.micro", hook_seconds=HOOK_SECONDS
        )
        spec = {"providerID": group["AutoScalingGroupARN"], "minSize": 0, "maxSize": 1}
        infrastructure = "infrastructure.cluster.x-k8s.io/v1beta2"
        pool = _object(infrastructure, "AWSMachinePool", {"name": name}, spec)
        self.cluster.create("awsmachinepools", NAMESPACE, pool)
        return str(group["Instances"][0]["InstanceId"])


def _object(api_version: str, kind: str, metadata: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
