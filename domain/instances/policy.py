"""What an installation wants done about instances that are taken. By default nothing but labels."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from enum import StrEnum

from pydantic import ValidationError

from domain.instances.health import Effect
from domain.model import Model


class Reaction(StrEnum):
    """What is done.

    Deleting the Machine makes Cluster API cordon, drain and replace it, with no access to the workload cluster; cordon
    and drain goes through the workload cluster's kubeconfig, and replaces nothing.
    """

    LABEL = "label"
    DELETE_MACHINE = "delete-machine"
    DRAIN = "drain"


_UNCONFIRMED = ("capacity_reservation", "rebalance")


class ReactionPolicy(Model):
    """The reaction to each cause.

    Attributes:
        terminated: the instance is being terminated, or is.
        spot: Spot terminates or stops it; hibernation leaves no time and is only labelled.
        capacity_reservation: a reservation takes it back; `label` only, as EC2 has no call that confirms it.
        rebalance: Spot may take it soon; `label` only, for the same reason.
        ending: a scheduled event after which it does not come back by itself.
        reboot: a scheduled reboot; a drained Node is used again afterwards.
        maintenance: a scheduled loss of network or power for a short while.
        terminating_hook: Auto Scaling waits before it terminates. Labels only leaves the hook to whoever made it.
        launching_hook: complete the hook of a launch once the Node is ready.
        abandon_failed_launch: have an instance terminated whose Node is not ready in time.
        launch_timeout: how long a Node may take to become ready.
        maintenance_lead: how long before its date a scheduled event is acted upon.
        hook_margin: how long before Auto Scaling ends a hook's wait it is completed, drained or not.
    """

    terminated: Reaction = Reaction.LABEL
    spot: Reaction = Reaction.LABEL
    capacity_reservation: Reaction = Reaction.LABEL
    rebalance: Reaction = Reaction.LABEL
    ending: Reaction = Reaction.LABEL
    reboot: Reaction = Reaction.LABEL
    maintenance: Reaction = Reaction.LABEL
    terminating_hook: Reaction = Reaction.LABEL
    launching_hook: bool = False
    abandon_failed_launch: bool = False
    launch_timeout: timedelta = timedelta(minutes=15)
    maintenance_lead: timedelta = timedelta(hours=24)
    hook_margin: timedelta = timedelta(seconds=60)

    @classmethod
    def of(cls, texts: Iterable[str]) -> ReactionPolicy:
        """The policy of settings: `CAUSE=REACTION`, as in `spot=delete-machine`, `launching_hook=true`.

        Raises:
            ValueError: a text is none; it says which.
        """
        given = [text.partition("=") for text in texts]
        chosen = {cause.strip().replace("-", "_"): reaction.strip() for cause, _, reaction in given}
        wrong = sorted(set(chosen) - set(cls.model_fields))
        if wrong:
            raise ValueError(
                f"{wrong[0]!r} is not of the form CAUSE=REACTION; causes are {', '.join(sorted(cls.model_fields))}"
            )
        for cause in _UNCONFIRMED:
            if chosen.get(cause, Reaction.LABEL) != Reaction.LABEL:
                named = cause.replace("_", "-")
                raise ValueError(
                    f"{named}={chosen[cause]}: EC2 has no call that confirms this event, so anyone who may send "
                    f"to the queue could cause the reaction. Use {named}=label; `spot` and `terminated` can react."
                )
        try:
            return cls.model_validate(chosen)
        except ValidationError as error:
            cause = str(error.errors()[0]["loc"][0])
            known = "one of " + ", ".join(Reaction) if isinstance(cls().model_dump()[cause], Reaction) else "its kind"
            raise ValueError(f"{cause}={chosen[cause]}: that is not {known}") from error

    def for_spot(self, action: str) -> Reaction:
        """The reaction to a notice of Spot."""
        return Reaction.LABEL if action == "hibernate" else self.spot

    def for_effect(self, effect: Effect | None) -> Reaction:
        """The reaction to a scheduled event; none to one that nobody knows."""
        if effect is None:
            return Reaction.LABEL
        if effect.ends:
            return self.ending
        return self.reboot if effect is Effect.REBOOT else self.maintenance
