"""How a lifecycle is declared: one class for each kind, in the `workflows` module of its area.

    @lifecycle("Greeting", world=GreetingWorld, observe=ObserveGreeting, decide=decide)
    class GreetingWorkflow(Entity[GreetingWorld]):
        '''What happens to a Greeting, with a drawing of its phases.'''

A lifecycle's own signals, updates and queries are methods of the class, besides those of `workflows/durable_driver.py`.

Lifecycles run without Temporal's sandbox, which would execute their module again for each run and check only that
module. A test keeps clocks and randomness out of all modules that workflows reach.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from temporalio import workflow

from domain.carried_memory import Carry
from domain.decision import Action, Decision, World
from domain.passes import passed
from workflows.durable_driver import Entity

E = TypeVar("E", bound=Entity[Any])


def lifecycle(
    kind: str,
    *,
    world: type[World],
    observe: type[Action],
    decide: Callable[[Any, datetime], Decision] = passed,
) -> Callable[[type[E]], type[E]]:
    """A decorator that makes a class the workflow of a kind.

    Args:
        kind: the workflow's type, which is the kind's name.
        world: the model that `decide` gets; before the first observation it has only the `key`.
        observe: the action that observes; see `Entity.observation`.
        decide: makes the decision; omitted where the whole pass is one activity.
    """

    def declare(cls: type[E]) -> type[E]:
        # Temporal counts an annotated `self` as an argument of the workflow.
        def begin(self, carry: Carry) -> None:  # type: ignore[no-untyped-def]
            Entity.__init__(self, carry, world(key=carry.key), decide)
            self.begin()

        async def run(self, carry: Carry) -> None:  # type: ignore[no-untyped-def]
            await self.life()

        workflow.init(_given(cls, "__init__", begin))
        workflow.run(_given(cls, "run", run))
        cls.observe = observe
        return workflow.defn(name=kind, sandboxed=False)(cls)

    return declare


def _given(cls: type[Any], name: str, method: Any) -> Any:
    """Define the method on the class. Temporal checks by `__qualname__` that the class itself defines it."""
    method.__name__, method.__qualname__, method.__module__ = name, f"{cls.__name__}.{name}", cls.__module__
    setattr(cls, name, method)
    return method
