"""Temporal decodes an activity's input by the annotation of its parameter; without one a dict arrives."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from inspect import isfunction
from typing import Any

import activities
from domain.model import Model


def definitions() -> Iterator[Any]:
    for module in pkgutil.walk_packages(activities.__path__, "activities."):
        for each in list(vars(importlib.import_module(module.name)).values()):
            if isinstance(each, type) and each.__module__ == module.name:
                members = (vars(each).get(name) for name in dir(each))
                found = (getattr(each, "__temporal_activity_definition", None) for each in members if isfunction(each))
                yield from (definition for definition in found if definition is not None)


def test_every_activity_has_the_type_of_its_input() -> None:
    found = {each.name: each.arg_types for each in definitions()}
    assert {"aws.tag_account", "kube.patch", "accounts.pass_pool"} <= found.keys()
    untyped = [
        name
        for name, types in found.items()
        if not types or not all(isinstance(each, type) and issubclass(each, Model) for each in types)
    ]
    assert untyped == []
