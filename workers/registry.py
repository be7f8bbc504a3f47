"""What a worker runs: the workflows of each area and the activities of each task queue.

All installed areas are included (`domain.areas`). An activity's queue is that of the action that names it, so workflows
and workers cannot differ.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import TypeGuard, cast

from temporalio import activity, workflow

from domain.areas import area_of, installed
from domain.decision import Action, World
from domain.identity import task_queue


def areas() -> tuple[str, ...]:
    return tuple(installed())


def workflows_of(area: str) -> Sequence[type]:
    module = importlib.import_module(installed()[area].workflows)
    return [each for each in vars(module).values() if _is_workflow_of(module, each)]


def _is_workflow_of(module: ModuleType, value: object) -> TypeGuard[type]:
    defined_there = isinstance(value, type) and value.__module__ == module.__name__
    return defined_there and workflow._Definition.from_class(cast("type", value)) is not None


def actions() -> Mapping[str, type[Action]]:
    """Every action that names an activity, by the activity's name."""
    import domain

    for module in pkgutil.walk_packages(domain.__path__, "domain."):
        importlib.import_module(module.name)
    for area in installed().values():
        if not area.own:
            importlib.import_module(area.activities)
    return {action.activity: action for action in _descendants(Action) if "activity" in vars(action)}


def by_queue(activities: Iterable[Callable[..., object]]) -> Mapping[str, Sequence[Callable[..., object]]]:
    """The activities by the plain name of their task queue.

    Raises:
        KeyError: no action names one of the activities.
    """
    known = actions()
    queues: dict[str, list[Callable[..., object]]] = defaultdict(list)
    for each in activities:
        definition = activity._Definition.must_from_callable(each)
        queues[known[definition.name or ""].queue].append(each)
    return queues


def queues_of(served: Iterable[str], cluster: str) -> set[tuple[str, str]]:
    """The task queues that a cluster's workers of these areas poll, each with `workflow` or `activity`."""
    wanted = set(served)
    found = {(area, "workflow") for area in wanted}
    for action in actions().values():
        # Actions outside of areas' packages belong to accounts, whose workers poll the shared queues.
        if (area_of(action.__module__) or "accounts") in wanted:
            found.add((action.queue, "activity"))
    return {(task_queue(plain, cluster), kind) for plain, kind in found}


def observing_queues(area: str) -> set[str]:
    """The activity queues on which an area's objects are observed, and on which the shared activities write them."""
    observations = (each for each in actions().values() if each.result is not None and issubclass(each.result, World))
    return {each.queue for each in observations if area_of(each.__module__) == area}


def local_activities(activities: Iterable[Callable[..., object]]) -> Sequence[Callable[..., object]]:
    known = actions()
    return [each for each in activities if known[activity._Definition.must_from_callable(each).name or ""].local]


def _descendants(base: type[Action]) -> set[type[Action]]:
    children = set(base.__subclasses__())
    return children.union(*(_descendants(child) for child in children)) if children else children
