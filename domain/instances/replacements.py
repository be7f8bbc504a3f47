"""Replace before draining: a MachineDeployment is asked for a replacement before one of its Machines is deleted.

    replicas + 1, mark ──► annotate the Machine ──► Ready, or time is over ──► replicas - 1, unmark ──► delete Machine

Cluster API replaces a deleted Machine only once the Machine is gone. The mark is an annotation of the
MachineDeployment, written by the same patch as the replicas, so the request can be undone even if the workflow is lost.
The Machine's annotation makes the MachineSet delete this Machine. Replicas are lowered before the Machine is deleted;
otherwise the MachineSet would create another Machine. There is one exception: while the mark names other Machines as
well, these are annotated, too, and the MachineSet could choose one of them. Then the Machine is deleted first, and the
replicas are lowered afterwards.

| replicas at the end | meaning | then replicas are | the Machine |
|---|---|---|---|
| as Perdure set them | others have not changed them | lowered by one | is deleted |
| fewer | others lowered them: the MachineSet deletes the annotated Machine itself | unchanged | is deleted |
| more | others raised them: the MachineSet replaces the deleted Machine | unchanged | is deleted |
| any number | the cause was withdrawn | lowered or unchanged, as above; the replacement is deleted first | stays |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Self

from pydantic import ValidationError

from domain.control_annotations import paused
from domain.instances.constants import (
    AUTOSCALER_ANNOTATIONS,
    DELETE_FIRST_ANNOTATION,
    DEPLOYMENT_LABEL,
    REPLACING_ANNOTATION,
    TOPOLOGY_LABEL,
)
from domain.instances.events import Reckonable
from domain.instances.resources import Machine, MachineDeployment, MachineSet
from domain.instances.workflow_ids import InstanceKey
from domain.model import Model
from domain.resource import CustomResource, ObjectMeta

# The value of Cluster API's annotation on a Machine that is replaced. Cluster API only looks for the key.
REPLACED = "perdure: replaced"
# The mark's time is from a worker's clock, a Machine's creation time from the API server's clock.
CLOCKS_DIFFER = timedelta(seconds=5)
# An object's annotations may have 256 KiB.
MOST_AT_ONCE = 200
_NEVER = datetime.min.replace(tzinfo=UTC)


class UnreplaceableError(Exception):
    """Why a Machine cannot be replaced before it is deleted."""


class Replaced(Model):
    """A Machine for which a replacement was requested at the time `at`."""

    account: str
    region: str
    instance: str
    name: str
    uid: str
    at: Reckonable
    raised: bool = True  # whether the replicas include its replacement; False once others have set them

    @property
    def key(self) -> InstanceKey:
        return InstanceKey(account=self.account, region=self.region, instance_id=self.instance)


class Mark(Model):
    """The replacements that were requested from a MachineDeployment."""

    replicas: int  # the number of replicas without the replacements
    machines: tuple[Replaced, ...] = ()
    used: tuple[str, ...] = ()  # uids of replacements that have replaced a Machine and cannot replace another

    @property
    def expected(self) -> int:
        """The number of replicas that Perdure has set."""
        return self.replicas + sum(each.raised for each in self.machines)

    def of(self, uid: str) -> Replaced | None:
        return next((each for each in self.machines if each.uid == uid), None)

    def seen(self, replicas: int) -> Self:
        """This record of requested replacements, corrected if the MachineDeployment's `replicas` are not the expected
        number: others have set them, and Perdure leaves them.
        """
        if replicas == self.expected:
            return self
        machines = tuple(each.model_copy(update={"raised": False}) for each in self.machines)
        return self.model_copy(update={"replicas": replicas, "machines": machines})

    def begun(self, one: Replaced) -> Self:
        return self.model_copy(update={"machines": (*self.machines, one)})

    def ended(self, uid: str, replacement: str = "") -> Self:
        """The mark after removal of the Machine with this uid. `replacement` is the replacing Machine's uid, if any."""
        used = (*self.used, replacement) if replacement else self.used
        return self.model_copy(
            update={"machines": tuple(each for each in self.machines if each.uid != uid), "used": used}
        )

    @property
    def patch(self) -> dict[str, object]:
        text = self.model_dump_json() if self.machines else None
        return {"metadata": {"annotations": {REPLACING_ANNOTATION: text}}, "spec": {"replicas": self.expected}}


class Replacement(Model):
    deployment: str
    namespace: str
    name: str
    uid: str
    asked_at: datetime
    ready: str = ""  # the name of the Machine that replaces it, once its Node is ready
    overridden: bool = False  # whether others have lowered the replicas since, so that no replacement will come


class Unreplaced(Model):
    uid: str
    cause: str = ""  # the cause for which the replacement was wanted; another cause asks again
    why: str


def mark_of(annotations: Mapping[str, str]) -> Mark | None:
    """The mark; None if it is absent. Raises UnreplaceableError if it cannot be parsed."""
    written = annotations.get(REPLACING_ANNOTATION)
    if written is None:
        return None
    try:
        return Mark.model_validate_json(written)
    except ValidationError as error:
        raise UnreplaceableError(f"its annotation {REPLACING_ANNOTATION} cannot be read; remove it") from error


def marked(annotations: Mapping[str, str]) -> tuple[Replaced, ...]:
    try:
        mark = mark_of(annotations)
    except UnreplaceableError:
        return ()
    return mark.machines if mark else ()


def deployment_of(machine: Machine) -> str:
    return machine.metadata.labels.get(DEPLOYMENT_LABEL, "")


def check_replaceable(machine: Machine, machine_set: MachineSet | None, deployment: MachineDeployment | None) -> Mark:
    """The replacements already requested from the Machine's MachineDeployment. Raises UnreplaceableError if no other
    replacement may be requested.
    """
    if machine_set is None or deployment is None or not _owned(machine, machine_set, deployment):
        raise UnreplaceableError(f"no MachineDeployment owns Machine {machine.metadata.name}")
    meta, replicas = deployment.metadata, deployment.spec.replicas
    name = f"MachineDeployment {meta.name}"
    if meta.deleting:
        raise UnreplaceableError(f"{name} is being deleted")
    if deployment.paused or paused(meta):
        raise UnreplaceableError(f"{name} is paused")
    if any(each in meta.annotations for each in AUTOSCALER_ANNOTATIONS):
        raise UnreplaceableError(f"the cluster autoscaler sets the replicas of {name}")
    if TOPOLOGY_LABEL in meta.labels:
        raise UnreplaceableError(f"the topology of Cluster {deployment.cluster} sets the replicas of {name}")
    if deployment.status.updated_replicas < deployment.status.replicas:
        raise UnreplaceableError(f"{name} is being rolled out")
    if not replicas:
        raise UnreplaceableError(f"{name} has 0 replicas")
    try:
        mark = (mark_of(meta.annotations) or Mark(replicas=replicas)).seen(replicas)
    except UnreplaceableError as error:
        raise UnreplaceableError(f"{name}: {error}") from error
    if len(mark.machines) >= MOST_AT_ONCE:
        raise UnreplaceableError(f"{name} replaces {MOST_AT_ONCE} Machines already")
    return mark


def replaced_by(mark: Mark, members: Iterable[Machine]) -> dict[str, Machine]:
    """The replacement of each marked Machine, by the marked Machine's uid: a younger Machine whose Node is ready."""
    free = [each for each in newcomers(mark, members) if each.node_ready]
    found: dict[str, Machine] = {}
    for one in sorted(mark.machines, key=lambda each: (each.at, each.uid)):
        young = next((each for each in free if _since(each, one.at)), None)
        if young is not None:
            free.remove(young)
            found[one.uid] = young
    return found


def newcomers(mark: Mark, members: Iterable[Machine]) -> list[Machine]:
    known = {*mark.used, *(each.uid for each in mark.machines)}
    first = min(each.at for each in mark.machines)
    stays = (
        each for each in members if not (each.metadata.deleting or DELETE_FIRST_ANNOTATION in each.metadata.annotations)
    )
    young = (each for each in stays if each.metadata.uid not in known and _since(each, first))
    return sorted(young, key=lambda each: (_born(each), each.metadata.name))


def replacement_of(key: InstanceKey, deployment: MachineDeployment, members: Iterable[Machine]) -> Replacement | None:
    meta = deployment.metadata
    one = next((each for each in marked(meta.annotations) if each.key == key), None)
    mark = mark_of(meta.annotations) if one else None
    if one is None or mark is None:
        return None
    young = replaced_by(mark, members).get(one.uid)
    return Replacement(
        deployment=meta.name,
        namespace=meta.namespace,
        name=one.name,
        uid=one.uid,
        asked_at=one.at,
        ready=young.metadata.name if young else "",
        overridden=not one.raised or (deployment.spec.replicas or 0) < mark.expected,
    )


def is_replaced(machine: Machine) -> bool:
    return machine.metadata.annotations.get(DELETE_FIRST_ANNOTATION) == REPLACED


def surplus_of(uid: str) -> str:
    return f"perdure: surplus of {uid}"


def _owned(machine: Machine, machine_set: MachineSet, deployment: MachineDeployment) -> bool:
    return _owns(machine_set, machine.metadata) and _owns(deployment, machine_set.metadata)


def _owns(owner: CustomResource, meta: ObjectMeta) -> bool:
    return any(each.uid == owner.metadata.uid for each in meta.owner_references)


def _since(machine: Machine, moment: datetime) -> bool:
    return _born(machine) >= moment - CLOCKS_DIFFER


def _born(machine: Machine) -> datetime:
    return machine.metadata.creation_timestamp or _NEVER
