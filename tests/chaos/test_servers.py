"""The servers that Perdure depends on are killed at every type of action; so are the watcher and the supervisor.

A server is killed and started again several times in one turn: each time that a row of actions is under way. A call of
the API server is under way on one side of its effect or on the other. Rows of one turn are dealt out to several cases,
so that there is time between two kills.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from chaos_cluster import until
from chaos_effects import DISCARDING, FINISHING, FORGETTING, OBSERVING, QUEUEING, RETURNING, TAKING, AwsCall, effects
from chaos_holds import Holds, Row
from chaos_lab import Lab, Process, Record
from chaos_proxy import Break

from localcloud import services
from localcloud.aws.contract import FaultKind
from localcloud.temporal import choice

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(500)]

BACK_SECONDS = 60.0
PATIENCE_SECONDS = 8.0
# What the actions of a row wait for when the server dies. The API server dies with the connection; the others leave
# the caller its answer.
DEATHS: dict[str, dict[str, Break]] = {
    "temporal": {"at work": Break.DELAYED},
    "watch": {"at work": Break.DELAYED},
    "etcd": {"before the effect": Break.PARKED, "after the effect": Break.DELAYED},
    "kube-apiserver": {"before the effect": Break.PARKED, "after the effect": Break.AFTER},
    # Only where the sweep runs on a production Temporal (PERDURE_LOCAL_TEMPORAL).
    **({"postgres": {"at work": Break.DELAYED}} if choice.chosen(None) == choice.POSTGRES else {}),
}
# The rows of each kind of turn, and among how many cases they are dealt out.
TURNS: dict[str, tuple[tuple[Row, ...], int]] = {
    "take": (TAKING, 3),
    "finish": (FINISHING, 1),
    "starve": ((OBSERVING, (QUEUEING,), (DISCARDING,)), 1),
    "give back": (RETURNING, 2),
}


@dataclass(frozen=True)
class FailedAccounts:
    """One case: the server dies at each of these rows, in one turn."""

    server: str
    moment: str
    turn: str
    rows: tuple[Row, ...]
    number: int

    @property
    def name(self) -> str:
        """As the test's id says it."""
        return f"{self.server}-{self.moment}-{self.turn}-{self.number}".replace(" ", "-")


def _cases() -> Iterator[FailedAccounts]:
    for server, moments in DEATHS.items():
        for moment in moments:
            for turn, (rows, cases) in TURNS.items():
                for number in range(cases):
                    yield FailedAccounts(server, moment, turn, rows[number::cases], number + 1)


SWEEP = tuple(_cases())


def _marked(deaths: FailedAccounts) -> object:
    turn = "give back" if deaths.turn == "give back" else "take"
    return pytest.param(deaths, id=deaths.name, marks=pytest.mark.turn(turn))


@pytest.mark.parametrize("deaths", [_marked(each) for each in SWEEP])
def test_work_goes_on_although_a_server_dies_at_each_action(
    lab: Lab, record: Record, record_property: Callable[[str, object], None], deaths: FailedAccounts
) -> None:
    record([effect for row in deaths.rows for effect in row], f"{deaths.server} killed, {deaths.moment}")
    begin = _BEGINNINGS[deaths.turn](lab)
    victim = _Victim(lab, deaths.server)
    holds = Holds(lab, deaths.rows, DEATHS[deaths.server][deaths.moment])
    begin()
    holds.at_each(victim.kill, when=victim.is_up)
    until(victim.is_up, f"{deaths.server} is back", BACK_SECONDS)
    record_property("seconds", round(lab.settle(), 1))
    lab.dismiss_who_queued()


def test_each_server_dies_at_every_type_of_action_of_an_account() -> None:
    # An account that is deleted while its support case is open takes a turn of its own (test_kills).
    of_accounts = {effect.activity for effect in effects()} - {FORGETTING.activity}
    for server, moments in DEATHS.items():
        for moment in moments:
            swept = [each for each in SWEEP if (each.server, each.moment) == (server, moment)]
            assert {effect.activity for each in swept for row in each.rows for effect in row} == of_accounts


Begin = Callable[[], object]


def _take(lab: Lab) -> Begin:
    lab.ready_to("take")
    return lab.take


def _give_back(lab: Lab) -> Begin:
    lab.ready_to_give_back_twice()
    return lab.give_back


def _finish(lab: Lab) -> Begin:
    """The pool's pass has bound the claim and died; the next worker finds a claim that finishes by itself."""
    lab.ready_to("take")
    lab.take_and_die()
    return lab.worker.start


def _starve(lab: Lab) -> Begin:
    """A second claim finds no account, and AWS refuses the next account of the pool."""
    lab.ready_to("take")
    refusal = FaultKind.ASYNC_FAILURE
    lab.emulator.fault("organizations", "CreateAccount", kind=refusal, count=1, code="INVALID_PAYMENT_INSTRUMENT")

    def begin() -> None:
        lab.take()
        lab.queue()

    return begin


_BEGINNINGS: dict[str, Callable[[Lab], Begin]] = {
    "take": _take,
    "finish": _finish,
    "starve": _starve,
    "give back": _give_back,
}


class _Victim:
    """A server that is killed again and again, and started again by its supervisor."""

    def __init__(self, lab: Lab, name: str) -> None:
        self._lab = lab
        self._name = name
        self._killed: int | None = None
        self._started = 0.0

    def kill(self) -> None:
        """SIGKILL."""
        if self._name == "watch":
            self._lab.watch.kill()
            self._lab.watch.start()
            self._started = time.monotonic()
        else:
            self._killed = self._lab.deployment.kill(self._name)

    def is_up(self) -> bool:
        """Whether it is there to be killed: again, if it was killed before.

        On a slow machine the watcher dies while it starts: what is held would be over before it is ready.
        """
        if self._name == "watch":
            return self._lab.watch.is_ready() or time.monotonic() > self._started + PATIENCE_SECONDS
        row = self._lab.deployment.service(self._name)
        return row.settled and row.pid != self._killed


@pytest.mark.parametrize("turn", ["take", "give back"])
def test_work_goes_on_after_the_supervisor_and_all_processes_died(lab: Lab, record: Record, turn: str) -> None:
    rows, action = (TAKING, "RunInstances") if turn == "take" else (RETURNING, "DeleteBucket")
    moment = next(e for row in rows for e in row if isinstance(e.call, AwsCall) and e.call.action == action)
    record([moment], "everything killed, up again")
    begin = _BEGINNINGS[turn](lab)
    armed = lab.arm(moment, Break.DELAYED)
    begin()
    lab.await_struck([armed])
    lab.emulator.save()  # the emulator is the outside world: that it forgets nothing is not what is tried here
    lab.worker.kill()
    lab.watch.kill()
    supervisor = lab.deployment.status().supervisor_pid
    assert supervisor is not None
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: not lab.deployment.is_up(), "the supervisor gone", 20)
    lab.deployment.up(only=services.SERVERS, tether=True)
    lab.find_again()
    lab.worker.start()
    lab.watch.start()
    lab.settle()


def test_two_watchers_at_once_do_nothing_twice(lab: Lab, record: Record) -> None:
    unelected = lab.settings | {"PERDURE_INSTALLATION": "another"}
    second = Process(lab.deployment, ("watch",), unelected, label="second-watch")
    second.start()
    second.await_ready()
    try:
        for turn in ("take", "give back"):
            record([(turn, "all of it")], "two watchers")
            _BEGINNINGS[turn](lab)()
            lab.settle()
    finally:
        second.stop()


def test_the_watcher_is_away_while_claims_come_and_go(lab: Lab, record: Record) -> None:
    for turn in ("take", "give back"):
        record([(turn, "all of it")], "no watcher when it begins")
        begin = _BEGINNINGS[turn](lab)
        lab.watch.kill()
        begin()
        lab.watch.start()
        lab.settle()
