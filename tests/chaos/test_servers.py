"""The servers that Perdure stands on are killed in the middle of its work; so are the watcher and the supervisor."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest
from chaos_cluster import until
from chaos_effects import RETURNING, TAKING, AwsCall, Effect
from chaos_lab import Lab, Process, Record
from chaos_proxy import Break

from localcloud import services

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(500)]

SERVERS = ("temporal", "etcd", "kube-apiserver", "watch")
_MOMENTS = {
    "take": ("CreateAccount", "CreateAccessKey", "RunInstances", "CreateCase"),
    "give back": ("CreateAccessKey", "DeleteBucket", "DeleteHostedZone"),
}


def _moments(turn: str) -> list[Effect]:
    found = [effect for row in (TAKING if turn == "take" else RETURNING) for effect in row]
    return [
        next(e for e in found if isinstance(e.call, AwsCall) and e.call.action == action) for action in _MOMENTS[turn]
    ]


def _prepare(lab: Lab, turn: str) -> Callable[[], None]:
    if turn == "take":
        lab.ready_to("take")
        return lab.take
    lab.ready_to_give_back_twice()
    return lab.give_back


def _kill(lab: Lab, server: str) -> None:
    if server == "watch":
        lab.watch.kill()
        lab.watch.start()
        return
    pid = lab.deployment.kill(server)
    lab.deployment.wait_service(server, other_than_pid=pid)


@pytest.mark.parametrize("turn", ["take", "give back"])
@pytest.mark.parametrize("server", SERVERS)
def test_work_goes_on_although_a_server_dies_again_and_again(lab: Lab, record: Record, server: str, turn: str) -> None:
    start = _prepare(lab, turn)
    moments = _moments(turn)
    record(moments, f"{server} killed at that moment")
    armed = [lab.arm(effect, Break.DELAYED) for effect in moments]
    start()
    for each in armed:
        lab.await_struck([each])
        _kill(lab, server)
    lab.settle()


@pytest.mark.parametrize("turn", ["take", "give back"])
def test_work_goes_on_after_the_supervisor_and_all_processes_died(lab: Lab, record: Record, turn: str) -> None:
    start = _prepare(lab, turn)
    moment = _moments(turn)[1]
    record([moment], "everything killed, up again")
    armed = lab.arm(moment, Break.DELAYED)
    start()
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
    second = Process(lab.deployment, ("watch",), lab.settings, label="second-watch")
    second.start()
    second.await_ready()
    try:
        for turn in ("take", "give back"):
            record([(turn, "all of it")], "two watchers")
            _prepare(lab, turn)()
            lab.settle()
    finally:
        second.stop()


def test_the_watcher_is_away_while_claims_come_and_go(lab: Lab, record: Record) -> None:
    for turn in ("take", "give back"):
        record([(turn, "all of it")], "no watcher when it begins")
        start = _prepare(lab, turn)
        lab.watch.kill()
        start()
        lab.watch.start()
        lab.settle()
