from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar, Self

from domain.control_annotations import RETRIED
from domain.decision import Action, Decision, Outcome, World
from domain.resource import CustomResource
from domain.writes import DropFinalizer, JsonPatch, Patch, patched


class ObjectWorld(World):
    """A world with an object in the field that `about` names.

    Writes carry the observed resourceVersion: the API server refuses them if the object has changed since.
    """

    about: ClassVar[str]
    first_phase: ClassVar[str] = "New"  # the phase while `status.state` is empty

    @property
    def resource(self) -> CustomResource:
        """The object as observed, with Perdure's later writes applied."""
        found: CustomResource = getattr(self, self.about)
        return found

    @property
    def state(self) -> str:
        return str(self.resource.status.state)  # type: ignore[attr-defined]

    @property
    def phase(self) -> str:
        return "Deleting" if self.resource.metadata.deleting else self.state or self.first_phase

    @property
    def owner(self) -> str:
        return self.resource.owner

    @property
    def others_finalizers(self) -> str:
        return ", ".join(self.resource.metadata.finalizers_without(self.resource.kind_of.finalizer))

    def written(self, patch: dict[str, object], resource_version: str, *, gone: bool = False) -> Self:
        if gone:
            return self.model_copy(update={"exists": False})
        return self.model_copy(update={self.about: patched(self.resource, patch, resource_version)})

    def working(
        self,
        why: str,
        *actions: Action,
        waits_for: tuple[str, ...] = (),
        deadline: datetime | None = None,
        at: str = "",
    ) -> Decision:
        """A decision to start the actions in this order; `waits_for` names what the lifecycle waits for."""
        return self._decision(Outcome.WORKING, why, actions, waits_for, deadline, at)

    def waiting(
        self,
        why: str,
        waits_for: str | tuple[str, ...],
        *actions: Action,
        deadline: datetime | None = None,
        at: str = "",
        phase: str = "",
    ) -> Decision:
        """A decision to wait for an outside change or the deadline; the actions only report or retry."""
        waited = (waits_for,) if isinstance(waits_for, str) else waits_for
        return self._decision(Outcome.WAITING, why, actions, waited, deadline, at, phase)

    def retried(self, token: str) -> Decision:
        patch: JsonPatch = {"metadata": {"annotations": {RETRIED: token}}}
        return self.working("record the retry", self.write(patch, "retry honoured"))

    def settled(self, why: str, phase: str = "") -> Decision:
        return self._decision(Outcome.SETTLED, why, phase=phase)

    def gone(self) -> Decision:
        why = f"the {self.resource.kind_of.name} does not exist any more"
        return Decision(phase="Gone", outcome=Outcome.GONE, why=why)

    def given_up(self, done: str = "released") -> Decision | None:
        """The decision to wait for the object's removal; None if the object still has Perdure's finalizer."""
        if self.resource.kind_of.finalizer in self.resource.metadata.finalizers:
            return None
        if others := self.others_finalizers:
            return self.waiting(f"{done}; waits for other finalizers: {others}", "other finalizers")
        return self.waiting(f"{done}; Kubernetes removes it", "its removal")

    def _decision(
        self,
        outcome: Outcome,
        why: str,
        actions: tuple[Action, ...] = (),
        waits_for: tuple[str, ...] = (),
        deadline: datetime | None = None,
        at: str = "",
        phase: str = "",
    ) -> Decision:
        return Decision(
            phase=phase or self.phase,
            outcome=outcome,
            why=why,
            actions=actions,
            waits_for=waits_for,
            deadline=deadline,
            at_deadline=at,
            owner=self.owner,
        )

    def write(self, patch: JsonPatch, note: str, subresource: str = "") -> Patch:
        version = self.resource.metadata.resource_version
        return Patch(key=self.key, patch=patch, subresource=subresource, resource_version=version, note=note)

    def write_status(self, status: Any, note: str = "") -> Patch:
        """Write the whole status: the schema requires some of its fields if a status is present."""
        patch: JsonPatch = {"status": status.model_dump(mode="json", exclude_none=True)}
        return self.write(patch, note or f"status {status.state or 'without a state'}", "status")

    def status_change(self, status: Any, note: str = "") -> tuple[Patch, ...]:
        """The write of the status; empty if the object already has this status."""
        present = self.resource.status  # type: ignore[attr-defined]
        return (self.write_status(status, note),) if status != present else ()

    def drop_finalizer(self, note: str = "drop the finalizer") -> DropFinalizer:
        resource = self.resource
        return DropFinalizer.of(self.key, resource.metadata, resource.kind_of.finalizer, note)
