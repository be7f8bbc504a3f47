"""The types of scheduled events of EC2 and AWS Health, and what each type does to an instance.

The types are from AWS's public rule sets. They are matched by parts of their names, because each also exists for
persistent instances and as an expedited event. An unknown type shows in the phase and the annotation only.
"""

from __future__ import annotations

from enum import StrEnum

SCHEDULED_CATEGORIES = ("scheduledChange", "plannedChange")


class Effect(StrEnum):
    RETIREMENT = "scheduled-retirement"
    STOP = "scheduled-stop"
    REBOOT = "scheduled-reboot"
    MAINTENANCE = "scheduled-maintenance"
    TERMINATION = "scheduled-termination"

    @property
    def ends(self) -> bool:
        """Whether the instance does not come back by itself."""
        return self in (Effect.RETIREMENT, Effect.STOP, Effect.TERMINATION)

    @property
    def codes(self) -> frozenset[str]:
        return _CODES[self]


_RETIRING = frozenset({"instance-retirement", "instance-stop"})
_CODES = {
    Effect.RETIREMENT: _RETIRING,
    Effect.STOP: _RETIRING,
    Effect.REBOOT: frozenset({"instance-reboot", "system-reboot"}),
    Effect.MAINTENANCE: frozenset({"system-maintenance", "system-reboot", "instance-reboot"}),
    # EC2 has no code of its own for a scheduled termination.
    Effect.TERMINATION: _RETIRING,
}

# The first of these parts that a code contains determines its effect.
_EFFECTS = (
    ("INSTANCE_TERMINATION", Effect.TERMINATION),
    ("INSTANCE_STOP", Effect.STOP),
    ("RETIREMENT", Effect.RETIREMENT),
    ("REBOOT_MAINTENANCE", Effect.REBOOT),
    ("REBOOT_FLEXIBLE_MAINTENANCE", Effect.REBOOT),
    ("NETWORK_MAINTENANCE", Effect.MAINTENANCE),
    ("POWER_MAINTENANCE", Effect.MAINTENANCE),
)


def effect_of(code: str) -> Effect | None:
    if not code.startswith("AWS_EC2_") or not is_scheduled(code):
        return None
    return next((effect for piece, effect in _EFFECTS if piece in code), None)


def is_scheduled(code: str) -> bool:
    return code.endswith(("_SCHEDULED", "_EXPEDITED"))


def expedited(code: str) -> bool:
    """Whether AWS has expedited the event, so that reactions begin at once, not `maintenance_lead` before its date."""
    return code.endswith("_EXPEDITED")
