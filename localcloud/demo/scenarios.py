"""The demos by name. A demo is imported when it is looked up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from localcloud.demo.stage import Scenario


class _Scenarios(Mapping[str, Scenario]):
    _names = ("accounts", "api", "byoc", "claims", "greeting", "instances", "loadbalancer", "resilience")

    def __getitem__(self, name: str) -> Scenario:
        if name not in self._names:
            raise KeyError(name)
        scenario: Scenario = import_module(f"localcloud.demo.{name}").SCENARIO
        return scenario

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


SCENARIOS = _Scenarios()
