"""Progress by area instead of ten thousand dots.

    12:03:40  decisions 4120/7908 · claims 31/180 · accounts 12/212 · 1 failed

A line comes when an area is done, when a test fails, and at least every half minute while anything ends. The summary
lists the files that took longest, which is where a run can be shortened.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from tests.running.areas import area_of

BETWEEN_LINES = 30.0
SLOWEST_FILES = 25


class Progress:
    """Counts what ends, by area, in the process that reports."""

    def __init__(self, config: pytest.Config) -> None:
        """Report to the terminal of `config`."""
        self._config = config
        self._tests = Path(str(config.rootpath)) / "tests"
        self._areas: dict[str, str] = {}
        self._total: Counter[str] = Counter()
        self._ended: Counter[str] = Counter()
        self._seconds: Counter[str] = Counter()
        self._failed = 0
        self._said = time.monotonic()
        psutil.cpu_percent()  # the next call says how busy the cores were since

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: list[str]) -> None:
        """Each worker collects the same tests; the first one's count."""
        if not self._total:
            self._count(ids)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Without workers the session has the tests itself."""
        self._count([item.nodeid for item in session.items])

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str]:
        """A letter for nothing: what fails has a line of its own."""
        if report.when != "call" and report.passed:
            return "", "", ""
        outcome = "error" if report.failed and report.when != "call" else report.outcome
        return outcome, "", outcome.upper()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test has ended when it was taken down; what failed is said at once."""
        self._seconds[report.nodeid.partition("::")[0]] += report.duration
        if report.failed:
            self._failed += 1
            self._write(f"FAILED {report.nodeid}" + (f" ({report.when})" if report.when != "call" else ""))
        if report.when != "teardown":
            return
        area = self._area(report.nodeid)
        self._ended[area] += 1
        if report.failed or self._ended[area] == self._total[area] or time.monotonic() - self._said > BETWEEN_LINES:
            self._say()

    def pytest_terminal_summary(self) -> None:
        """Setup, test and teardown together, summed over all processes."""
        busy = psutil.cpu_percent()
        self._write(
            f"{self._seconds.total():.0f} s in tests, of all processes together, the cores busy {busy:.0f} %; most in"
        )
        for file, seconds in self._seconds.most_common(SLOWEST_FILES):
            self._write(f"  {seconds:6.1f} s  {file}")

    def _say(self) -> None:
        self._said = time.monotonic()
        counts = [f"{area} {self._ended[area]}/{total}" for area, total in self._total.items() if self._ended[area]]
        failed = [f"{self._failed} failed"] if self._failed else []
        self._write(f"{time.strftime('%H:%M:%S')}  {' · '.join(counts + failed)}")

    def _write(self, line: str) -> None:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(line)

    def _count(self, ids: list[str]) -> None:
        self._total.update(self._area(nodeid) for nodeid in ids)

    def _area(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file not in self._areas:
            self._areas[file] = area_of((self._config.rootpath / file).relative_to(self._tests))
        return self._areas[file]
