"""The options with which the engine schedules each action of an area."""

from __future__ import annotations

import importlib
import pkgutil
from datetime import timedelta
from string import Formatter

import pytest

import domain
from domain.decision import Action, Facts, World


def all_actions() -> list[type[Action]]:
    for module in pkgutil.walk_packages(domain.__path__, "domain."):
        importlib.import_module(module.name)
    return [each for each in below(Action) if not each.local]


def below(action: type[Action]) -> list[type[Action]]:
    found = [each for child in action.__subclasses__() for each in below(child)]
    return found if action.__subclasses__() else [action]


@pytest.mark.parametrize("action", all_actions(), ids=lambda action: f"{action.__module__}.{action.__name__}")
def test_a_killed_worker_is_noticed_long_before_its_action_had_to_end(action: type[Action]) -> None:
    """A pass over a Service was once looked for after two minutes, and a spot notice is worth no more than that."""
    urgent = action.__module__.startswith("domain.instances.")
    assert action.heartbeat <= timedelta(seconds=20 if urgent else 60)
    assert action.heartbeat <= max(action.start_to_close / 2, timedelta(seconds=20))


def test_an_actions_summary_and_slot_are_made_of_its_fields_and_properties() -> None:
    """They are named in text, which no type checker reads."""
    for action in all_actions():
        named = {name.split(".")[0] for _, name, _, _ in Formatter().parse(action.title) if name}
        properties = {name for each in action.__mro__ for name, value in vars(each).items() if type(value) is property}
        assert named | ({action.slot_by} - {""}) <= action.model_fields.keys() | properties, action


def test_the_facts_of_an_action_are_fields_of_a_memory() -> None:
    all_actions()
    remaining = {name for world in worlds(World) for name in type(world.model_fields["known"].default).model_fields}
    for action in all_actions():
        facts = action.result.model_fields if action.result and issubclass(action.result, Facts) else {}
        assert {*action.learns, *facts} <= remaining, action


def worlds(world: type[World]) -> list[type[World]]:
    return [world, *(each for child in world.__subclasses__() for each in worlds(child))]
