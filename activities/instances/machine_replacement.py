"""Deletes Machines; if the policy wants it, replaces them first (`domain/instances/replacements.py`).

Each step can be repeated after a lost answer or a crash: a MachineDeployment's mark shows what was requested, and each
patch of a MachineDeployment has the resourceVersion that was read before.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from temporalio import activity

from activities import attempt
from activities.activity_class import Activities
from activities.instances import metrics
from activities.instances.cache import InstanceCache
from activities.instances.disruption_budget import Disruptions
from domain.identity import Key
from domain.instances import MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from domain.instances.actions import Asked, AskReplacement, DeleteOwner, EndReplacement, Taking
from domain.instances.constants import DELETE_FIRST_ANNOTATION
from domain.instances.disruption_budget import Turn
from domain.instances.notices import about, on_each
from domain.instances.replacements import (
    REPLACED,
    Mark,
    Replaced,
    Replacement,
    UnreplaceableError,
    Unreplaced,
    check_replaceable,
    deployment_of,
    is_replaced,
    mark_of,
    newcomers,
    replaced_by,
    surplus_of,
)
from domain.instances.resources import Machine, MachineDeployment, MachineSet
from domain.instances.workflow_ids import InstanceKey
from domain.notices import Notice, Reported, normal, warning
from domain.resource import ObjectMeta
from engine.clock import now
from engine.errors import Absent, Conflict, Denied, Invalid, Unavailable, unless_absent
from engine.kube import KubeApi

_ATTEMPTS = 10
_REPLACE = "replace-first"

log = logging.getLogger(__name__)


class MachineActivities(Activities):
    def __init__(self, kube: KubeApi, cache: InstanceCache, disruptions: Disruptions) -> None:
        self._kube = kube
        self._cache = cache
        self._disruptions = disruptions
        # A lock for each MachineDeployment, by namespace and name. Without it, if AWS reclaims many Machines of a
        # MachineDeployment, write conflicts would exhaust the attempts.
        self._locks: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)

    @activity.defn(name=AskReplacement.activity)
    async def ask_replacement(self, wanted: AskReplacement) -> Asked:
        machine = await self._standing(wanted)
        if machine is None:
            return Asked(turn=Turn(at=now()))
        notices: list[Notice] = []
        try:
            async with self._locks[wanted.namespace, deployment_of(machine)]:
                replacement = await self._requested(machine, wanted, notices)
        except (UnreplaceableError, Denied, Invalid) as error:
            metrics.reacted(_REPLACE, wanted.because, metrics.Outcome.REFUSED)
            message = f"{wanted.name} is deleted because of {wanted.cause} without being replaced first: {error}"
            why = Unreplaced(uid=wanted.uid, cause=wanted.cause, why=str(error))
            notices.append(warning("NotReplacedFirst", message, about=about(machine)))
            return Asked(turn=Turn(at=now()), unreplaced=why, notices=tuple(notices))
        if replacement.turn.why:
            metrics.reacted(_REPLACE, wanted.because, metrics.Outcome.WAITS)
        return replacement.model_copy(update={"notices": tuple(notices)})

    @activity.defn(name=EndReplacement.activity)
    async def end_replacement(self, end: EndReplacement) -> Reported:
        notices: list[Notice] = []
        if end.keep:
            machine = await self._standing(end)
            if machine is not None and is_replaced(machine):
                await self._annotate(machine, None)
        if end.deployment:
            async with self._locks[end.namespace, end.deployment]:
                await self._lowered(end, notices, keep=end.keep)
        if end.keep:
            await self._disruptions.end(end.key.name)
        return Reported(notices=tuple(notices))

    @activity.defn(name=DeleteOwner.activity)
    async def delete_machine(self, deletion: DeleteOwner) -> Taking:
        """Delete the Machine once its node group permits it. A Machine that was recreated under the same name stays."""
        machine = await self._standing(deletion)
        if machine is None:
            # Another client has deleted the Machine, or an earlier attempt has, which could not report it.
            return Taking(
                turn=Turn(at=now()), notices=await self._taken_earlier(deletion) if attempt.repeated() else ()
            )
        turn = await self._disruptions.begin(
            machine, deletion.key.name, taken=deletion.taken, most=deletion.most, policy=deletion.policy
        )
        if turn.why:
            metrics.reacted("delete-machine", deletion.because, metrics.Outcome.WAITS)
            return Taking(turn=turn)
        notices: list[Notice] = []
        if not deletion.deployment:
            await self._deleted(deletion, notices)
            return Taking(turn=turn, notices=tuple(notices))
        async with self._locks[deletion.namespace, deletion.deployment]:
            if await self._alone(deletion):
                await self._replaced(machine, deletion, notices)
                await self._deleted(deletion, notices)
            else:
                await self._deleted(deletion, notices)
                await self._replaced(machine, deletion, notices)
        return Taking(turn=turn, notices=tuple(notices))

    async def _deleted(self, deletion: DeleteOwner, notices: list[Notice]) -> None:
        try:
            answer = await self._kube.delete(MACHINE, deletion.namespace, deletion.name, uid=deletion.uid)
        except (Absent, Conflict):
            return
        if answer is not None:
            self._cache.learn(MACHINE, answer)
        metrics.reacted("delete-machine", deletion.because, timed=not deletion.deployment)
        notices += self._taken(deletion)

    def _taken(self, deletion: DeleteOwner) -> tuple[Notice, ...]:
        message = f"{deletion.name} is deleted because of {deletion.cause}: AWS reclaims instance {deletion.key.name}"
        machine = Key(kind=MACHINE.name, namespace=deletion.namespace, name=deletion.name, uid=deletion.uid)
        objects = dict.fromkeys((machine, *deletion.about))
        return on_each(objects, warning, "InstanceTaken", message, cluster=f"{deletion.namespace}/{deletion.cluster}")

    async def _taken_earlier(self, deletion: DeleteOwner) -> tuple[Notice, ...]:
        """Complete an earlier attempt whose result was lost: lower the replicas if they are not lowered yet, and return
        that attempt's notices.
        """
        notices = [*self._taken(deletion)]
        if deletion.deployment:
            async with self._locks[deletion.namespace, deletion.deployment]:
                with suppress(Denied, Invalid):  # tried again once the Machine is gone
                    await self._lowered(deletion, notices)
        return tuple(notices)

    async def _alone(self, deletion: DeleteOwner) -> bool:
        try:
            mark = _readable(await self._deployment(deletion.namespace, deletion.deployment))
        except (Denied, Invalid):
            return True
        return mark is None or len(mark.machines) <= 1

    async def _replaced(self, machine: Machine, deletion: DeleteOwner, notices: list[Notice]) -> None:
        try:
            await self._annotate(machine, REPLACED)
            ready = await self._lowered(deletion, notices)
        except (Denied, Invalid) as error:
            # AWS reclaims the instance all the same; the replicas are lowered once the Machine is gone.
            log.warning(
                "Machine %s is deleted, but the replica that was added for its replacement is not removed yet: %s",
                machine.key.path,
                error,
            )
            ready = False
        outcome = metrics.Outcome.DONE if ready else metrics.Outcome.INCOMPLETE
        metrics.reacted(_REPLACE, deletion.because, outcome)

    async def _standing(self, which: AskReplacement | EndReplacement | DeleteOwner | ObjectMeta) -> Machine | None:
        found = await self._cache.fresh(MACHINE, which.namespace, which.name)
        machine = Machine.model_validate(found) if found else None
        return machine if machine and machine.metadata.uid == which.uid and not machine.metadata.deleting else None

    async def _requested(self, machine: Machine, wanted: AskReplacement, notices: list[Notice]) -> Asked:
        """Mark the MachineDeployment and annotate the Machine, unless that is done. Raises UnreplaceableError, Denied
        or Invalid.
        """
        name, key = deployment_of(machine), InstanceKey.of(wanted.key)
        machine_set = await self._machine_set(machine)
        turn: Turn | None = None
        for _ in range(_ATTEMPTS):
            deployment = await self._deployment(wanted.namespace, name)
            mark = _readable(deployment)
            if deployment is not None and mark is not None and (one := mark.of(wanted.uid)):
                await self._annotated(machine, wanted, name, notices)
                if not notices and (turn is not None or attempt.repeated()):
                    notices.append(_replacement_requested(deployment, wanted, mark.expected))
                named = {"deployment": name, "namespace": wanted.namespace, "name": wanted.name, "uid": wanted.uid}
                marked = Replacement.model_validate({**named, "asked_at": one.at})
                return Asked(turn=turn or Turn(at=now()), replacement=marked)
            if is_replaced(machine):
                return Asked(turn=Turn(at=now()))  # already scaled back: only the Machine's deletion is left
            mark = check_replaceable(machine, machine_set, deployment)
            if turn is None:
                turn = await self._disruptions.begin(
                    machine, key.instance_id, taken=wanted.taken, most=wanted.most, policy=wanted.policy
                )
            if turn.why or deployment is None:
                return Asked(turn=turn)
            place = {"account": key.account, "region": key.region, "instance": key.instance_id}
            one = Replaced.model_validate({**place, "name": wanted.name, "uid": wanted.uid, "at": now()})
            if await self._written(deployment, mark.begun(one)):
                notices.append(_replacement_requested(deployment, wanted, mark.expected + 1))
        raise Unavailable(f"MachineDeployment {wanted.namespace}/{name} is written by other clients all the time")

    async def _annotated(
        self, machine: Machine, wanted: AskReplacement, deployment: str, notices: list[Notice]
    ) -> None:
        """Annotate the Machine, so that its MachineSet deletes this Machine first. If the annotation is refused,
        scale the MachineDeployment back.
        """
        try:
            await self._annotate(machine, REPLACED)
        except (Denied, Invalid):
            named = {"namespace": wanted.namespace, "name": wanted.name, "uid": wanted.uid, "deployment": deployment}
            await self._lowered(EndReplacement.model_validate({"key": wanted.key, **named}), notices, keep=True)
            raise

    async def _lowered(self, which: EndReplacement | DeleteOwner, notices: list[Notice], *, keep: bool = False) -> bool:
        """Scale the MachineDeployment back. Returns True if the replacement is ready or the request was already
        withdrawn.
        """
        for again in range(_ATTEMPTS):
            deployment = await self._deployment(which.namespace, which.deployment)
            before = _readable(deployment)
            if deployment is None or before is None or before.of(which.uid) is None:
                if deployment is not None and (again or attempt.repeated()):
                    then = "stays" if keep else "is deleted"
                    message = f"scaled back to {deployment.spec.replicas}: Machine {which.name} {then}"
                    notices.append(normal("ReplacementEnded", message, about=about(deployment)))
                return True
            members = self._cache.members(which.namespace, which.deployment)
            young = replaced_by(before, members).get(which.uid)
            replicas = deployment.spec.replicas or 0
            after = before.seen(replicas).ended(which.uid, young.metadata.uid if young and not keep else "")
            gone = all(each.metadata.uid != which.uid for each in members)
            if (keep or (gone and len(before.machines) > 1)) and after.expected < replicas:
                await self._spare(which, before, members)
            if not await self._written(deployment, after):
                continue
            scaled = f"scaled from {replicas} to {after.expected}" if after.expected != replicas else "not scaled back"
            if keep:
                because = f"Machine {which.name} stays"
            else:
                because = f"Machine {which.name} is deleted, "
                because += f"replaced by {young.metadata.name}" if young else "and its replacement is not ready"
            notices.append(normal("ReplacementEnded", f"{scaled}: {because}", about=about(deployment)))
            return young is not None
        raise Unavailable(
            f"MachineDeployment {which.namespace}/{which.deployment} is written by other clients all the time"
        )

    async def _spare(self, which: EndReplacement | DeleteOwner, mark: Mark, members: tuple[Machine, ...]) -> None:
        """Annotate an unneeded replacement so that it is deleted first. Each attempt annotates the same Machine."""
        value = surplus_of(which.uid)
        marked = (each for each in members if each.metadata.annotations.get(DELETE_FIRST_ANNOTATION) == value)
        spare = next(marked, None) or next(reversed(newcomers(mark, members)), None)
        if spare is None:
            return
        await self._annotate(spare, value)
        if len(mark.machines) > 1 and not spare.metadata.deleting:
            meta = spare.metadata
            async with self._unless_gone(spare):
                await self._kube.delete(MACHINE, meta.namespace, meta.name, uid=meta.uid)

    async def _annotate(self, machine: Machine, value: str | None) -> None:
        meta = machine.metadata
        if value is not None and DELETE_FIRST_ANNOTATION in meta.annotations:
            return
        patch = {"metadata": {"uid": meta.uid, "annotations": {DELETE_FIRST_ANNOTATION: value}}}
        async with self._unless_gone(machine):
            self._cache.learn(MACHINE, await self._kube.patch(MACHINE, meta.namespace, meta.name, patch))

    @asynccontextmanager
    async def _unless_gone(self, machine: Machine) -> AsyncIterator[None]:
        """Ignore Absent, and Conflict if the Machine is gone or being deleted. Raise any other Conflict: if the
        annotation is not written, a MachineSet may delete the wrong Machine.
        """
        try:
            yield
        except Absent:
            return
        except Conflict:
            if await self._standing(machine.metadata):
                raise

    async def _deployment(self, namespace: str, name: str) -> MachineDeployment | None:
        found = await self._cache.fresh(MACHINE_DEPLOYMENT, namespace, name) if name else None
        return MachineDeployment.model_validate(found) if found else None

    async def _machine_set(self, machine: Machine) -> MachineSet | None:
        owners = machine.metadata.owner_references
        name = next((each.name for each in owners if each.kind == MACHINE_SET.name), "")
        if not name:
            return None
        found = await unless_absent(self._kube.get(MACHINE_SET, machine.metadata.namespace, name))
        return MachineSet.model_validate(found) if found else None

    async def _written(self, deployment: MachineDeployment, mark: Mark) -> bool:
        meta = deployment.metadata
        try:
            answer = await self._kube.patch(
                MACHINE_DEPLOYMENT, meta.namespace, meta.name, mark.patch, resource_version=meta.resource_version
            )
        except (Absent, Conflict):
            return False
        self._cache.learn(MACHINE_DEPLOYMENT, answer)
        return True


def _replacement_requested(deployment: MachineDeployment, wanted: AskReplacement, replicas: int) -> Notice:
    message = f"scaled from {replicas - 1} to {replicas}: Machine {wanted.name} is replaced before it is deleted"
    return normal("ReplacementAsked", f"{message} because of {wanted.cause}", about=about(deployment))


def _readable(deployment: MachineDeployment | None) -> Mark | None:
    try:
        return mark_of(deployment.metadata.annotations) if deployment else None
    except UnreplaceableError:
        return None
