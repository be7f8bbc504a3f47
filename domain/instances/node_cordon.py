"""The cordon and taints of a Node. Annotations record which of them Perdure set; the rest is never removed.

If the cause is over and the instance runs, a Node that Perdure cordoned is uncordoned.
"""

from __future__ import annotations

from collections.abc import Sequence

from domain.instances.actions import CordonNode
from domain.instances.constants import CORDONED_ANNOTATION, TAINTED_ANNOTATION
from domain.instances.event_record import STOPPED, InstanceRecord
from domain.instances.event_verification import Verdict
from domain.instances.events import InstanceState
from domain.instances.interruption_causes import Cause
from domain.instances.interruption_policy import Reaction
from domain.resource import KubeModel, ObjectMeta
from domain.writes import JsonPatch


class _Spec(KubeModel):
    unschedulable: bool = False
    taints: tuple[dict[str, object], ...] = ()


class MarkedNode(KubeModel):
    metadata: ObjectMeta = ObjectMeta()
    spec: _Spec = _Spec()

    @property
    def tainted(self) -> list[str]:
        return [each for each in self.metadata.annotations.get(TAINTED_ANNOTATION, "").split(",") if each]


def mark_of(reaction: Reaction) -> str:
    return TAINTED_ANNOTATION if reaction is Reaction.TAINT else CORDONED_ANNOTATION


def cordon_patch(found: MarkedNode, node: CordonNode) -> JsonPatch:
    marks, spec, taint = JsonPatch(), JsonPatch(), node.taint
    if node.reaction is not Reaction.TAINT and not found.spec.unschedulable:
        spec["unschedulable"] = True
        marks[CORDONED_ANNOTATION] = node.cause
    if taint and (taint.key, taint.effect) not in map(_key_and_effect, found.spec.taints):
        spec["taints"] = [*found.spec.taints, taint.model_dump(mode="json")]
        marks[TAINTED_ANNOTATION] = ",".join(dict.fromkeys((*found.tainted, f"{taint.key}:{taint.effect}")))
    return {"metadata": {"annotations": marks}, "spec": spec} if spec else {}


def uncordons(record: InstanceRecord, due: Sequence[Cause]) -> bool:
    if record.drain is None or record.standing is None or record.state is not InstanceState.RUNNING:
        return False
    if record.drain.cause == STOPPED and not record.standing.asked:
        return False
    # A completed lifecycle action still keeps the Node cordoned, because the instance runs on for a moment.
    reasons = {cause.name for cause in due} | {hook.key for hook in record.hooks.values()}
    # Each of these causes would drain an uncordoned Node again. The same notice under another id is another cause.
    still = any(cause.ends or (cause.reaction.of_node and cause.verdict is not Verdict.REFUTED) for cause in due)
    return record.drain.cause not in reasons and not still


def uncordon_patch(found: MarkedNode) -> JsonPatch:
    annotations = found.metadata.annotations
    spec: JsonPatch = {"unschedulable": None} if CORDONED_ANNOTATION in annotations else {}
    if tainted := {each.rpartition(":")[::2] for each in found.tainted}:
        spec["taints"] = [each for each in found.spec.taints if _key_and_effect(each) not in tainted]
    ours = (name for name in (CORDONED_ANNOTATION, TAINTED_ANNOTATION) if name in annotations)
    return {"metadata": {"annotations": dict.fromkeys(ours)}, "spec": spec} if spec else {}


def _key_and_effect(taint: dict[str, object]) -> tuple[object, object]:
    return taint.get("key", ""), taint.get("effect", "")
