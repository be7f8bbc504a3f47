"""What a worker runs: the workflows of all installed areas, and the activities that actions name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import TypeGuard, cast

from temporalio import activity, workflow

from domain.areas import installed
from domain.decision import Action


def areas() -> tuple[str, ...]:
    return tuple(installed())


def workflows_of(area: str) -> Sequence[type]:
    module = importlib.import_module(installed()[area].workflows)
    return [each for each in vars(module).values() if _is_workflow_of(module, each)]


def _is_workflow_of(module: ModuleType, value: object) -> TypeGuard[type]:
    defined_there = isinstance(value, type) and value.__module__ == module.__name__
    return defined_there and workflow._Definition.from_class(cast("type", value)) is not None


def actions() -> Mapping[str, type[Action]]:
    import domain

    for module in pkgutil.walk_packages(domain.__path__, "domain."):
        importlib.import_module(module.name)
    for area in installed().values():
        if not area.own:
            importlib.import_module(area.activities)
    return {action.activity: action for action in _descendants(Action) if "activity" in vars(action)}


def local_activities(activities: Iterable[Callable[..., object]]) -> Sequence[Callable[..., object]]:
    known = actions()
    return [each for each in activities if known[activity._Definition.must_from_callable(each).name or ""].local]


def _descendants(base: type[Action]) -> set[type[Action]]:
    children = set(base.__subclasses__())
    return children.union(*(_descendants(child) for child in children)) if children else children
