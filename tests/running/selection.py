"""Which tests run: the default ones, all of them, or the rest; and in how many processes.

    ./run pytest               all decisions, and each area's main paths, faults and bad input on real servers
    ./run pytest --complete    everything but chaos and slow
    ./run pytest --rest        what --complete adds to the default run
    ./run pytest FILE, -k, -m  what is named, whatever its markers

Without names there is one process more than cores, since tests wait for servers; each process has servers of its own.
`PERDURE_TEST_STATE` runs in one process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

DEFAULT_MARKERS = "not chaos and not slow"

# Folders and files, relative to `tests/`, whose tests only the complete run holds, beside single tests that bear the
# marker `complete`. What they hold is either tried on another level in the default run, or is not the product itself.
ONLY_COMPLETE = (
    "chaos",  # kills and calls of each effect
    "temporal",  # what we rely on in Temporal
    "integration/emulator",  # the AWS emulator's own behaviour
    "integration/machines",  # the local host of load balancers' machines
    "integration/openstack",  # each effect on a real OpenStack; its life is in test_load_balancers
    "integration/test_accounts_regions.py",
    "integration/test_accounts_taken_over.py",
    "integration/test_alerts.py",
    "integration/claims/test_claim_pauses.py",
    "integration/test_demo.py",
    "integration/test_demo_claims.py",
    "integration/test_demo_greeting.py",
    "integration/test_demo_instances.py",
    "integration/test_demos_on_openstack.py",
    "integration/test_kube_client.py",  # each request of a client; every area's tests stand on it
    "integration/test_kubernetes_download.py",
    "integration/test_local_deployment.py",
    "integration/test_metrics_scraped.py",
    "integration/test_openstack_box.py",
    "integration/test_operating.py",
    "integration/test_probes.py",  # servers that stay away for minutes
    "integration/test_rbac.py",
    "integration/test_watcher.py",  # what a restart may miss; each area's tests are woken by it
    "integration/test_wheel.py",
    "integration/yawollet",  # Envoy and its agent alone; both serve in test_load_balancers
    "replay/test_replay_command.py",  # the command; the histories themselves are replayed by test_replay
)

# What one process gets as a whole (`conftest.py`) and takes minutes, longest first: the other processes must not wait
# for it in the end. Then come the other tests on servers, and decisions last.
LONGEST = (
    "chaos",
    "integration/claims",
    "integration/threescale",
    "integration/openstack",
    "integration/test_accounts.py",
    "integration/aws",
    "integration/emulator",
    "integration/test_local_deployment.py",
    "integration/test_demos_on_openstack.py",
    "integration/test_openstack_box.py",
    "integration/test_load_balancers.py",
    "integration/test_demo.py",
    "integration/test_accounts_bad_input.py",
    "integration/machines",
    "integration/yawollet",
    "temporal",
    "integration/test_watcher.py",
    "integration/test_cli_levers.py",
    "integration/test_demo_claims.py",
    "integration",
    "workflows",
)


def add_options(parser: pytest.Parser) -> None:
    """`--complete` and `--rest`."""
    group = parser.getgroup("perdure")
    group.addoption(
        "--complete", dest="run", action="store_const", const="complete", help="everything but chaos and slow"
    )
    group.addoption("--rest", dest="run", action="store_const", const="rest", help="what --complete adds")


def choose_run(config: pytest.Config) -> None:
    """Decide once, in the process that was called: workers get the options that stand here in the end."""
    option = config.option
    if option.run is None:
        default = option.markexpr == DEFAULT_MARKERS and not _names_tests(config)
        option.run = "default" if default else "named"


def choose_processes(config: pytest.Config) -> None:
    """One more than the cores that this process may use, unless a number is given or single tests are named.

    A worker starts none of its own: it is called as the first process was, without names.
    """
    if hasattr(config, "workerinput"):
        return
    if config.option.numprocesses is None and not _names_tests(config) and "PERDURE_TEST_STATE" not in os.environ:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        config.option.numprocesses = (cores or 1) + 1


def _names_tests(config: pytest.Config) -> bool:
    return config.args_source is not pytest.Config.ArgsSource.TESTPATHS or bool(config.option.keyword)


def holds_nothing(config: pytest.Config, path: Path) -> bool:
    """Whether the chosen run holds no test of this folder or file, which need not be imported then.

    That saves each process of `--rest` most of its first fifteen seconds, and of the default run a third.
    """
    run = config.option.run
    if _is_only_complete(config, path):
        return run == "default"
    return run == "rest" and path.name.startswith("test_") and b"mark.complete" not in path.read_bytes()


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the chosen run does not hold."""
    only_complete: dict[Path, bool] = {}
    for item in items:
        if item.path not in only_complete:
            only_complete[item.path] = _is_only_complete(config, item.path)
        if only_complete[item.path]:
            item.add_marker("complete")
    run = config.option.run
    if run not in ("default", "rest"):
        return
    chosen = [item for item in items if (item.get_closest_marker("complete") is not None) == (run == "rest")]
    if len(chosen) < len(items):
        retained = set(chosen)
        config.hook.pytest_deselected(items=[item for item in items if item not in retained])
        items[:] = chosen


def rank(config: pytest.Config, path: Path) -> int:
    """The place of a test's file in `LONGEST`, the last place for a file that is not listed."""
    return min((LONGEST.index(name) for name in _names(config, path) if name in LONGEST), default=len(LONGEST))


def _is_only_complete(config: pytest.Config, path: Path) -> bool:
    return any(name in ONLY_COMPLETE for name in _names(config, path))


def _names(config: pytest.Config, path: Path) -> Iterator[str]:
    """A path and its folders, relative to `tests/`."""
    parts = path.parts[len(config.rootpath.parts) + 1 :]
    return ("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))
