"""The reactions to instances that AWS reclaims. By default Perdure only labels them.

For the instances that it selects, an InterruptionPolicy takes precedence over the settings.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from enum import StrEnum

from pydantic import Field, ValidationError

from domain.instances.constants import TAINT_KEY
from domain.instances.scheduled_event_types import Effect
from domain.model import Model


class Reaction(StrEnum):
    """Reactions, from the weakest to the strongest.

    Deleting the Machine makes Cluster API cordon, drain and replace it, without access to the workload cluster.
    Reactions on the Node use the workload cluster's kubeconfig, and replace nothing. Terminating the instance is for
    Nodes without Cluster API: Auto Scaling or Karpenter replaces it.
    """

    LABEL = "label"
    TAINT = "taint"
    CORDON = "cordon"
    DRAIN = "drain"
    TERMINATE_INSTANCE = "terminate-instance"
    DELETE_MACHINE = "delete-machine"

    @property
    def strength(self) -> int:
        """The rank, from 0 for the weakest reaction. After a stronger reaction, a weaker one is not needed."""
        return tuple(Reaction).index(self)

    @property
    def of_node(self) -> bool:
        return self not in (Reaction.LABEL, Reaction.DELETE_MACHINE)


class Budgets(StrEnum):
    RESPECT = "Respect"
    FORCE = "Force"  # respected until the drain's time is over; then the remaining Pods are deleted
    IGNORE = "Ignore"  # Pods are deleted instead of evicted


class TaintEffect(StrEnum):
    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Draining(Model):
    pod_grace: timedelta | None = None  # how long a Pod may take to end; None if its own grace period applies
    node_grace: timedelta | None = None  # how long the whole drain may take; None if only AWS limits the time
    budgets: Budgets = Budgets.RESPECT
    # Whether Pods annotated `perdure.dev/do-not-disrupt` are not evicted until the drain's time is over.
    spares: bool = False


class Taint(Model):
    key: str
    value: str = ""
    effect: TaintEffect = TaintEffect.NO_SCHEDULE


class Tainting(Model):
    key: str = TAINT_KEY
    value: str = ""  # empty for the cause's sort, such as `spot`
    effect: TaintEffect = TaintEffect.NO_SCHEDULE
    # Whether the AWS Node Termination Handler's key for the cause is used, if the handler has one.
    nth_names: bool = False
    always: bool = False  # whether a Node that is cordoned or drained gets the taint as well

    def taint(self, sort: str) -> Taint:
        key = _NTH_KEYS.get(sort, self.key) if self.nth_names else self.key
        return Taint(key=key, value=self.value or sort, effect=self.effect)


# Tolerations of the AWS Node Termination Handler's users name these.
_NTH_KEYS = {
    "spot": "aws-node-termination-handler/spot-itn",
    "scheduled": "aws-node-termination-handler/scheduled-maintenance",
    "hook": "aws-node-termination-handler/asg-lifecycle-termination",
}
_UNCONFIRMED = ("capacity_reservation", "rebalance")
# Only an InterruptionPolicy can set these.
_OF_POLICIES = frozenset(
    {"name", "heartbeat", "hook_limit", "tainting", "draining", "most", "channels", "replace_first"}
)


class CauseSort(StrEnum):
    SPOT = "spot"
    SCHEDULED = "scheduled"
    HOOK = "hook"
    STOPPED = "stopped"
    ENDED = "ended"


class Channel(Model):
    """A webhook, and the causes that are reported to it. The InterruptionPolicy's notification of the same name has the
    webhook's address and format.
    """

    name: str
    causes: tuple[CauseSort, ...]


class ReactionPolicy(Model):
    name: str = ""  # the name of the InterruptionPolicy; empty if the policy comes from the settings
    terminated: Reaction = Reaction.LABEL
    stopped: Reaction = Reaction.LABEL
    spot: Reaction = Reaction.LABEL  # a hibernation leaves no time to react, and is only labelled
    capacity_reservation: Reaction = Reaction.LABEL  # `label` only, as EC2 has no call that confirms it
    rebalance: Reaction = Reaction.LABEL  # `label` only, as EC2 has no call that confirms it
    ending: Reaction = Reaction.LABEL  # a scheduled event that the instance does not come back from by itself
    reboot: Reaction = Reaction.LABEL  # a scheduled reboot; a drained Node is uncordoned afterwards
    maintenance: Reaction = Reaction.LABEL  # a scheduled short loss of network or power
    terminating_hook: Reaction = Reaction.LABEL  # with `label`, Perdure never completes the hook
    launching_hook: bool = False  # whether Perdure completes the hook of a launch once the Node is ready
    abandon_failed_launch: bool = False  # whether a launch without a ready Node is abandoned, which terminates it
    launch_timeout: timedelta = Field(timedelta(minutes=15), ge=timedelta(seconds=10))
    maintenance_lead: timedelta = timedelta(hours=24)  # how long before its date a scheduled event is acted upon
    # How long before Auto Scaling's limit a hook is completed, even if the Node is not drained.
    hook_margin: timedelta = timedelta(seconds=60)
    # The longest interval of a hook's heartbeats; None for half of its timeout, at most five minutes.
    heartbeat: timedelta | None = None
    hook_limit: timedelta | None = None  # how long after its beginning a hook is completed; None for AWS's limit
    tainting: Tainting = Tainting()
    draining: Draining = Draining()
    most: int | None = None  # how many machines of a node group may be disrupted at a time; None: the setting applies
    channels: tuple[Channel, ...] = ()
    replace_first: dict[str, timedelta] = {}  # how long these causes wait for a replacement; others do not wait

    @property
    def needs_node(self) -> bool:
        return self.launching_hook or any(isinstance(value, Reaction) and value.of_node for _, value in self)

    @classmethod
    def of(cls, texts: Iterable[str]) -> ReactionPolicy:
        """The policy that settings such as `spot=delete-machine` or `launching_hook=true` describe. Raises ValueError,
        which names the invalid setting.
        """
        given = [text.partition("=") for text in texts]
        chosen = {cause.strip().replace("-", "_"): reaction.strip() for cause, _, reaction in given}
        causes = set(cls.model_fields) - _OF_POLICIES
        wrong = sorted(set(chosen) - causes)
        if wrong:
            raise ValueError(f"{wrong[0]!r} is no cause; give CAUSE=REACTION; causes are {', '.join(sorted(causes))}")
        for cause in _UNCONFIRMED:
            if chosen.get(cause, Reaction.LABEL) != Reaction.LABEL:
                named = cause.replace("_", "-")
                raise ValueError(
                    f"{named}={chosen[cause]}: EC2 has no call that confirms this event, so anyone who may send "
                    f"to the queue could cause the reaction. Use {named}=label. EC2 confirms the causes `spot` and "
                    "`terminated`, so these can have other reactions."
                )
        try:
            return cls.model_validate(chosen)
        except ValidationError as error:
            cause = str(error.errors()[0]["loc"][0])
            known = "one of " + ", ".join(Reaction) if isinstance(cls().model_dump()[cause], Reaction) else "allowed"
            raise ValueError(f"{cause}={chosen[cause]}: that is not {known}") from error

    @property
    def for_hook(self) -> Reaction:
        hook = self.terminating_hook
        return Reaction.DRAIN if hook is Reaction.TERMINATE_INSTANCE else hook

    def for_spot(self, action: str) -> Reaction:
        return Reaction.LABEL if action == "hibernate" else self.spot

    def for_effect(self, effect: Effect | None) -> Reaction:
        reactions = {"ending": self.ending, "reboot": self.reboot, "maintenance": self.maintenance}
        return Reaction.LABEL if effect is None else reactions[_named(effect)]

    def replaces_for(self, effect: Effect) -> timedelta | None:
        return self.replace_first.get(_named(effect))


def _named(effect: Effect) -> str:
    if effect.ends:
        return "ending"
    return "reboot" if effect is Effect.REBOOT else "maintenance"
