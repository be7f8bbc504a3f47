"""Which tests a run holds, and how its progress is counted."""

from __future__ import annotations

import os
from pathlib import Path, PurePath
from types import SimpleNamespace
from typing import cast

import pytest

from tests.running import selection
from tests.running.areas import area_of

FOLDER = Path(__file__).parents[2]
pytest_plugins = ["pytester"]

CONFTEST = """
from tests.running import selection
from tests.running.progress import Progress

def pytest_addoption(parser):
    selection.add_options(parser)

def pytest_cmdline_main(config):
    selection.choose_run(config)

def pytest_configure(config):
    if config.option.run != "named":
        config.pluginmanager.register(Progress(config))

def pytest_ignore_collect(collection_path, config):
    return selection.holds_nothing(config, collection_path) or None

def pytest_collection_modifyitems(config, items):
    selection.select(config, items)
"""
INI = f"""
[pytest]
testpaths = tests
markers =
    complete
    slow
    chaos
addopts = -p no:xdist -p no:asyncio -m "{selection.DEFAULT_MARKERS}"
"""
LASTING = """
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    report.duration = len(item.path.stem)
    return report
"""
TESTS = """
import pytest

def test_main_path(): pass

@pytest.mark.complete
def test_detail(): pass

@pytest.mark.slow
def test_slow(): pass
"""


@pytest.mark.parametrize(
    ("arguments", "ran"),
    [
        ([], {"test_main_path"}),
        (["--complete"], {"test_main_path", "test_detail"}),
        (["--rest"], {"test_detail"}),
        (["tests/decisions"], {"test_main_path", "test_detail"}),
        (["-k", "detail"], {"test_detail"}),
        (["-m", "slow"], {"test_slow"}),
    ],
)
def test_a_run_holds_what_was_asked_for(pytester: pytest.Pytester, arguments: list[str], ran: set[str]) -> None:
    folder = pytester.mkdir("tests")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "decisions").mkdir()
    (folder / "decisions" / "test_it.py").write_text(TESTS)
    pytester.makeini(INI)
    result = pytester.inline_run(*arguments)
    passed, skipped, failed = result.listoutcomes()
    assert {report.nodeid.rpartition("::")[2] for report in passed} == ran
    assert not skipped
    assert not failed


@pytest.mark.parametrize(
    ("arguments", "failed"),
    [
        ([], ["decisions/test_it.py"]),
        (["--complete"], ["decisions/test_it.py", "temporal/test_it.py"]),
        (["--rest"], ["temporal/test_it.py"]),
        (["-k", "nothing"], ["decisions/test_it.py", "temporal/test_it.py"]),
    ],
)
def test_a_run_imports_nothing_that_it_does_not_hold(
    pytester: pytest.Pytester, arguments: list[str], failed: list[str]
) -> None:
    folder = pytester.mkdir("tests")
    (folder / "conftest.py").write_text(CONFTEST)
    for name in ("decisions", "temporal"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").touch()
        (folder / name / "test_it.py").write_text(f"raise RuntimeError('imported {name}/test_it.py')\n")
    pytester.makeini(INI)
    output = pytester.runpytest_inprocess(*arguments).stdout.str()
    assert [name for name in ("decisions/test_it.py", "temporal/test_it.py") if f"imported {name}" in output] == failed


def test_progress_is_reported_by_area_and_a_failure_at_once(pytester: pytest.Pytester) -> None:
    folder = pytester.mkdir("tests")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "decisions").mkdir()
    (folder / "decisions" / "test_it.py").write_text("def test_a(): pass\ndef test_b(): assert False\n")
    pytester.makeini(INI)
    result = pytester.runpytest_inprocess()
    result.stdout.fnmatch_lines(["FAILED tests/decisions/test_it.py::test_b", "* decisions 2/2 · 1 failed"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_a_run_ends_with_the_files_that_took_longest(pytester: pytest.Pytester) -> None:
    folder = pytester.mkdir("tests")
    (folder / "conftest.py").write_text(CONFTEST + LASTING)
    (folder / "decisions").mkdir()
    for name in ("test_a", "test_bbb", "test_cc"):
        (folder / "decisions" / f"{name}.py").write_text("def test_it(): pass\n")
    pytester.makeini(INI)
    result = pytester.runpytest_inprocess()
    result.stdout.fnmatch_lines(["63 s in tests*", "*24.0 s*test_bbb.py", "*21.0 s*test_cc.py", "*18.0 s*test_a.py"])


@pytest.mark.parametrize(("worker", "number"), [(False, len(os.sched_getaffinity(0)) + 1), (True, None)])
def test_only_the_first_process_starts_others(
    worker: bool, number: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PERDURE_TEST_STATE", raising=False)
    option = SimpleNamespace(numprocesses=None, keyword="")
    config = SimpleNamespace(option=option, args_source=pytest.Config.ArgsSource.TESTPATHS)
    if worker:
        config.workerinput = {}
    selection.choose_processes(cast("pytest.Config", config))
    assert option.numprocesses == number


def test_files_that_the_selection_names_exist() -> None:
    assert [each for each in (*selection.ONLY_COMPLETE, *selection.LONGEST) if not (FOLDER / each).exists()] == []


def test_the_longest_test_has_the_first_rank() -> None:
    config = cast("pytest.Config", SimpleNamespace(rootpath=FOLDER.parent))
    in_order = (
        "chaos/test_kills.py",
        "integration/claims/test_claims.py",
        "integration/test_crds.py",
        "decisions/test_x.py",
    )
    ranks = [selection.rank(config, FOLDER / path) for path in in_order]
    assert ranks == sorted(set(ranks))


@pytest.mark.parametrize(
    ("path", "area"),
    [
        ("decisions/test_claim_plans.py", "decisions"),
        ("chaos/test_kills.py", "chaos"),
        ("integration/claims/test_claim_pools.py", "claims"),
        ("integration/test_managed_kinds.py", "claims"),
        ("integration/threescale/test_threescale_sync.py", "3scale"),
        ("integration/aws/test_aws_cases.py", "accounts"),
        ("integration/emulator/test_emulator_events.py", "accounts"),
        ("integration/openstack/test_os_lives.py", "load balancers"),
        ("integration/machines/test_machine_host.py", "load balancers"),
        ("integration/test_event_consumer.py", "instances"),
        ("integration/test_wheel.py", "deployment"),
    ],
)
def test_a_test_belongs_to_an_area_by_its_name(path: str, area: str) -> None:
    assert area_of(PurePath(path)) == area
