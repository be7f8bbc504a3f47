"""What a worker runs: the workflows of each area and the activities of each task queue.

An area joins by the modules in its package under `workflows/`. The package itself imports none of them: each run of a
workflow executes its package and module anew in the sandbox, and would execute all the others with it (measured: a
third of what a short lifecycle costs the worker). Activities find their queue by the action that they
carry out: an action names its activity and its queue, so the two sides cannot drift apart unseen.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import TypeGuard, cast

from temporalio import activity, workflow

import workflows
from domain.decision import Action
from domain.identity import task_queue


def areas() -> tuple[str, ...]:
    """Every area with workflows."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(workflows.__path__) if module.ispkg))


def workflows_of(area: str) -> Sequence[type]:
    """The workflows of an area, in the order of their modules."""
    package = importlib.import_module(f"workflows.{area}")
    names = (module.name for module in pkgutil.iter_modules(package.__path__))
    modules = [importlib.import_module(f"workflows.{area}.{name}") for name in names]
    return [each for module in modules for each in vars(module).values() if _is_workflow_of(module, each)]


def _is_workflow_of(module: ModuleType, value: object) -> TypeGuard[type]:
    defined_there = isinstance(value, type) and value.__module__ == module.__name__
    return defined_there and workflow._Definition.from_class(cast("type", value)) is not None


def actions() -> Mapping[str, type[Action]]:
    """Every action that names an activity, by that name."""
    import domain

    for module in pkgutil.walk_packages(domain.__path__, "domain."):
        importlib.import_module(module.name)
    return {action.activity: action for action in _descendants(Action) if "activity" in vars(action)}


def by_queue(activities: Iterable[Callable[..., object]]) -> Mapping[str, Sequence[Callable[..., object]]]:
    """The activities by the plain name of their task queue.

    Raises:
        KeyError: an activity that no action names.
    """
    known = actions()
    queues: dict[str, list[Callable[..., object]]] = defaultdict(list)
    for each in activities:
        definition = activity._Definition.must_from_callable(each)
        queues[known[definition.name or ""].queue.value].append(each)
    return queues


def queues_of(served: Iterable[str], cluster: str) -> set[tuple[str, str]]:
    """The task queues that a cluster's workers of these areas poll, each with `workflow` or `activity`."""
    every, wanted = set(areas()), set(served)
    found = {(area, "workflow") for area in wanted}
    for action in actions().values():
        # What stands in no area's package belongs to accounts, whose workers have the shared queues.
        area = action.__module__.split(".")[1]
        if (area if area in every else "accounts") in wanted:
            found.add((action.queue.value, "activity"))
    return {(task_queue(plain, cluster), kind) for plain, kind in found}


def local_activities(activities: Iterable[Callable[..., object]]) -> Sequence[Callable[..., object]]:
    """Those that are carried out by the worker of the workflows."""
    known = actions()
    return [each for each in activities if known[activity._Definition.must_from_callable(each).name or ""].local]


def _descendants(base: type[Action]) -> set[type[Action]]:
    children = set(base.__subclasses__())
    return children.union(*(_descendants(child) for child in children)) if children else children
