"""How a lifecycle is declared: the workflow of a name, of the world that it decides about, and its decision.

    @lifecycle("LoadBalancerSet", LoadBalancerWorld)
    class LoadBalancerSetWorkflow(Passes[LoadBalancerWorld]):
        def observation(self, *, dry_run: bool = False) -> Action: ...

Signals, queries and updates of its own stand in the class. So do `__init__` and `run` where it begins with more than
its world, or goes on after its object is gone.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.carry import Carry
    from domain.decision import Decision, World
    from domain.passes import passed
    from workflows.entity import Entity

E = TypeVar("E", bound=Entity[Any])


def lifecycle(
    name: str, world: type[World], decide: Callable[[Any, datetime], Decision] = passed
) -> Callable[[type[E]], type[E]]:
    """Make a class the workflow of this name. Without a decision of its own its observation is a whole pass."""

    def declared(kind: type[E]) -> type[E]:
        def begin(self: E, carry: Carry) -> None:
            Entity.__init__(self, carry, world(key=carry.key), decide)

        async def run(self: E, carry: Carry) -> None:
            """Until the object is gone."""
            await self.live()

        for method, called in ((begin, "__init__"), (run, "run")):
            # Temporal knows a method of the class by these, and takes an annotated `self` for an input.
            method.__module__, method.__name__ = kind.__module__, called
            method.__qualname__ = f"{kind.__qualname__}.{called}"
            del method.__annotations__["self"]
            if called not in vars(kind):
                setattr(kind, called, method)
        workflow.init(begin)
        workflow.run(run)
        return workflow.defn(name=name)(kind)

    return declared
