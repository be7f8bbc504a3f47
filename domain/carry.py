"""What a workflow is started with, and what it hands to its next run.

Only what cannot be read again: every run observes the world, unless the process that starts the workflow has just
made the first pass and hands over what it came to (`world`). `known` is the area's own memory (its model as
JSON, e.g. the request id of an account being created), `refusals` the last failures by slot, `told` the notices that
were given, `seen` by kind the newest resourceVersion of its wakes.
"""

from __future__ import annotations

from domain.identity import Key
from domain.model import Model
from domain.notices import Notice
from domain.refusal import Refusal


class Carry(Model):
    """The input of every lifecycle's workflow; a watcher fills in the key only."""

    key: Key
    known: dict[str, object] = {}
    refusals: dict[str, Refusal] = {}
    told: tuple[Notice, ...] = ()
    seen: dict[str, str] = {}
    runs: int = 0
    world: dict[str, object] | None = None
