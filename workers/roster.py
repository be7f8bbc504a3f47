"""What a worker runs: the workflows of each area and the activities of each task queue.

An area joins by `WORKFLOWS` in its package under `workflows/`. Activities find their queue by the action that they
carry out: an action names its activity and its queue, so the two sides cannot drift apart unseen.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from temporalio import activity

import workflows
from domain.decision import Action


def areas() -> tuple[str, ...]:
    """Every area with workflows."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(workflows.__path__) if module.ispkg))


def workflows_of(area: str) -> Sequence[type]:
    """The workflows of an area."""
    found: Sequence[type] = importlib.import_module(f"workflows.{area}").WORKFLOWS
    return found


def actions() -> Mapping[str, type[Action]]:
    """Every action that names an activity, by that name."""
    import domain

    for module in pkgutil.walk_packages(domain.__path__, "domain."):
        importlib.import_module(module.name)
    return {action.activity: action for action in _descendants(Action) if "activity" in vars(action)}


def by_queue(activities: Iterable[Callable[..., object]]) -> Mapping[str, Sequence[Callable[..., object]]]:
    """The activities by task queue.

    Raises:
        KeyError: an activity that no action names.
    """
    known = actions()
    queues: dict[str, list[Callable[..., object]]] = defaultdict(list)
    for each in activities:
        definition = activity._Definition.must_from_callable(each)
        queues[known[definition.name or ""].queue.value].append(each)
    return queues


def _descendants(base: type[Action]) -> set[type[Action]]:
    children = set(base.__subclasses__())
    return children.union(*(_descendants(child) for child in children)) if children else children
