"""One installation for all cases of a run, thrown away after a case that failed; and the table of what was tried.

Takes and give-backs alternate, as do the turns of other rounds, so that hardly a case needs an undisturbed turn before
it. `CHAOS_SHARD=i/n` runs every n-th case, beginning with the i-th (from 1); `CHAOS_SECONDS=n` begins no further case
after so long. `CHAOS_STATE=DIR` is where the state lives (`CHAOS_KEEP=1` leaves it there), `CHAOS_REPORT=FILE` gets the
table as JSON lines, each case's when it has ended: case, lifecycle, effect, fault, seconds to settle, violation or not.
With `CHAOS_RESUME=1` cases that are recorded without a violation are not run again.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, TypeVar

import pytest
from chaos_balancers_lab import BalancersLab
from chaos_claims_lab import ClaimsLab
from chaos_effects import Effect
from chaos_installation import Installation
from chaos_instances_lab import InstancesLab
from chaos_kills import FAULTS, Death, Reused, Row
from chaos_lab import Lab, Record
from chaos_proxy import Break
from chaos_threescale_lab import ThreescaleLab

HERE = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "turn(name, of): the turn that a case disturbs; those of one round alternate")


# Python leaves a socket open that the other side resets between connect and TLS (ssl.SSLSocket._create).
# A server that is killed does that; nothing here can close it.
_UNCLOSED = pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep this shard's cases; let the turns alternate."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(_UNCLOSED)
    shard = os.environ.get("CHAOS_SHARD", "")
    cases = [item for item in items if HERE in item.path.parents and item.get_closest_marker("chaos")]
    if shard:
        number, of = (int(part) for part in shard.split("/"))
        others = {id(item) for index, item in enumerate(cases) if index % of != number - 1}
        config.hook.pytest_deselected(items=[item for item in items if id(item) in others])
        items[:] = [item for item in items if id(item) not in others]
        cases = [item for item in cases if id(item) not in others]
    if "CHAOS_RESUME" in os.environ:
        done = _done()
        config.hook.pytest_deselected(items=[item for item in cases if item.nodeid in done])
        items[:] = [item for item in items if item.nodeid not in done]
        cases = [item for item in cases if item.nodeid not in done]
    alternating = _alternating(cases)
    placed = {id(item) for item in alternating}
    items[:] = alternating + [item for item in items if id(item) not in placed]


def _done() -> set[str]:
    """Cases that an earlier run has found well, as its report says."""
    report = Path(os.environ["CHAOS_REPORT"])
    lines = [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []
    return {line["case"] for line in lines if not line["violated"]}


def _alternating(cases: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Those that disturb a turn: round after round, each with its turns by turns."""
    rounds: dict[str, dict[str, list[pytest.Item]]] = defaultdict(lambda: defaultdict(list))
    for item in cases:
        if marker := item.get_closest_marker("turn"):
            rounds[marker.kwargs.get("of", "")][marker.args[0]].append(item)
    rows = chain.from_iterable(zip_longest(*turns.values()) for turns in rounds.values())
    return [item for item in chain.from_iterable(rows) if item is not None]


_BEGAN = time.monotonic()


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """See whether there is time for another case."""
    if time.monotonic() - _BEGAN > float(os.environ.get("CHAOS_SECONDS", "inf")):
        item.session.shouldstop = "CHAOS_SECONDS are over"


L = TypeVar("L", Lab, ClaimsLab, BalancersLab, ThreescaleLab, InstancesLab)


class Labs:
    """Hands out the installation, and makes a new one where the last case has spoilt it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lab: Lab | ClaimsLab | BalancersLab | ThreescaleLab | InstancesLab | None = None
        self._made = 0

    def get(self, kind: type[L]) -> L:
        """The installation for these lifecycles, with its pool filled; there is one at a time."""
        if not isinstance(self._lab, kind):
            self.spoil()
            self._made += 1
            made = kind(self._directory / str(self._made))
            self._lab = made
            made.fill()
        assert isinstance(self._lab, kind)
        return self._lab

    def has(self, lab: object) -> bool:
        """Whether this is the current one."""
        return lab is not None and lab is self._lab

    def spoil(self) -> None:
        """What was there is not trusted any more."""
        lab, self._lab = self._lab, None
        if lab is not None:
            lab.close()


@pytest.fixture(scope="session")
def labs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Labs]:
    named = os.environ.get("CHAOS_STATE")
    directory = Path(named) if named else tmp_path_factory.mktemp("chaos")
    found = Labs(directory)
    yield found
    found.spoil()
    if named and "CHAOS_KEEP" not in os.environ:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="module")
def reused(labs: Labs) -> Iterator[Reused]:
    """The turns of a module's cases; ended after the last, so that other cases find what they know."""
    found = Reused()
    yield found
    if found.turns is not None and labs.has(found.lab):
        found.turns.end()


_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Record for the fixture below whether the test has failed."""
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report


@pytest.fixture
def lab(request: pytest.FixtureRequest, labs: Labs) -> Iterator[Lab]:
    """The installation of AWS accounts, settled."""
    yield from _lent(request, labs, Lab)


@pytest.fixture
def claims_lab(request: pytest.FixtureRequest, labs: Labs) -> Iterator[ClaimsLab]:
    """The installation of resource claims, settled."""
    yield from _lent(request, labs, ClaimsLab)


@pytest.fixture
def balancers_lab(request: pytest.FixtureRequest, labs: Labs) -> Iterator[BalancersLab]:
    """The installation of load balancers, settled."""
    yield from _lent(request, labs, BalancersLab)


@pytest.fixture
def threescale_lab(request: pytest.FixtureRequest, labs: Labs) -> Iterator[ThreescaleLab]:
    """The installation of 3scale objects, settled."""
    yield from _lent(request, labs, ThreescaleLab)


@pytest.fixture
def instances_lab(request: pytest.FixtureRequest, labs: Labs) -> Iterator[InstancesLab]:
    """The installation of EC2 instances, settled."""
    yield from _lent(request, labs, InstancesLab)


@pytest.fixture
def swept_lab(request: pytest.FixtureRequest, labs: Labs) -> Iterator[Installation]:
    """The installation of the area that a case of `test_broken.py` names, settled."""
    yield from _lent(request, labs, request.param)


def _lent(request: pytest.FixtureRequest, labs: Labs, kind: type[L]) -> Iterator[L]:
    found = labs.get(kind)
    yield found
    if request.node.stash.get(_FAILED, False):
        labs.spoil()
    else:
        found.lift()


@pytest.fixture
def record(record_property: Callable[[str, object], None]) -> Record:
    """Note what a case tries: effects (or lifecycle and what was broken), and the fault."""

    def note(what: Sequence[Effect | tuple[str, str]], fault: str) -> None:
        for each in what:
            lifecycle, name = (str(each.lifecycle), each.name) if isinstance(each, Effect) else each
            record_property("chaos", (lifecycle, name, fault))

    return note


@pytest.fixture
def death(lab: Lab, record: Record, record_property: Callable[[str, object], None], row: Row, mode: Break) -> Death:
    """The case of a sweep that the test is one of, noted."""
    record(row, FAULTS[mode])
    return Death(lab, row, mode, record_property)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write down what a case has tried, at once: a run of hours may not come to its end."""
    tried = _tried(report)
    if tried and (file := os.environ.get("CHAOS_REPORT")):
        more = dict(each for each in report.user_properties if each[0] != "chaos")
        with Path(file).open("a") as output:
            for lifecycle, name, fault in tried:
                fields = {"case": report.nodeid, "lifecycle": lifecycle, "what": name, "fault": fault}
                output.write(json.dumps({**fields, "violated": report.failed, **more}) + "\n")


def _tried(report: pytest.TestReport) -> list[tuple[str, str, str]]:
    """Lifecycle, effect and fault of each thing that a case has tried, once it has."""
    over = report.when == "call" or (report.failed and report.when == "setup")
    properties: list[tuple[str, Any]] = report.user_properties if over else []
    return [each for name, each in properties if name == "chaos"]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The table: lifecycle x fault x (runs, violations)."""
    runs: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for report in (r for kind in ("passed", "failed") for r in terminalreporter.stats.get(kind, [])):
        for lifecycle, _, fault in _tried(report):
            runs[lifecycle, fault][0] += 1
            runs[lifecycle, fault][1] += report.failed
    if not runs:
        return
    terminalreporter.section("chaos: runs and violations")
    for (lifecycle, fault), (count, violated) in sorted(runs.items()):
        terminalreporter.write_line(f"{lifecycle:14} {fault:32} {count:4} {violated:4}")
