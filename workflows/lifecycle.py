"""How a lifecycle is declared: one class for each kind, in the `workflows` module of its area.

    @lifecycle("Greeting", world=GreetingWorld, observe=ObserveGreeting, decide=decide)
    class GreetingWorkflow(Entity[GreetingWorld]):
        '''What happens to a Greeting, with a drawing of its phases.'''

The decorator makes the class a workflow of Temporal. Signals, updates and queries of its own stand in the class, beside
what every lifecycle has (`workflows/entity.py`).

Lifecycles run without Temporal's sandbox. It would execute their module again for each run, 6 to 7 ms of CPU, to keep
nondeterminism out of that module alone: decisions are pure functions of other modules, which it passes through. A test
keeps clocks and randomness out of all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from temporalio import workflow

from domain.carry import Carry
from domain.decision import Action, Decision, World
from domain.passes import passed
from workflows.entity import Entity

E = TypeVar("E", bound=Entity[Any])


def lifecycle(
    kind: str,
    *,
    world: type[World],
    observe: type[Action],
    decide: Callable[[Any, datetime], Decision] = passed,
) -> Callable[[type[E]], type[E]]:
    """Make a class the workflow of a kind.

    Args:
        kind: the workflow's type, which is the name of the kind.
        world: what one decision sees, made with the object's `key` alone at the beginning.
        observe: the action that observes; see `Entity.observation` for the fields that it is given.
        decide: the decision. A lifecycle whose whole pass is one activity has none of its own.
    """

    def declare(cls: type[E]) -> type[E]:
        # Temporal counts an annotated `self` among the arguments of the workflow.
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
    """Temporal takes these two from the workflow's own class only, and knows them by their names."""
    method.__name__, method.__qualname__, method.__module__ = name, f"{cls.__name__}.{name}", cls.__module__
    setattr(cls, name, method)
    return method
