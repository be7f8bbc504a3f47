"""The process that runs a deployment: `python -m localcloud.supervisor --state DIR`.

It holds the state directory's lock, and publishes each change in services.json. It restarts a service that ended. The
delay doubles from half a second to fifteen, and begins again after a run of five seconds. SIGTERM stops the services in
stages, the product before its servers, in under nine seconds. Services die with this process (tether.py).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import shutil
import signal
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from localcloud import services
from localcloud.kubernetes import own_kubeconfig
from localcloud.kubernetes.certificates import Certificates
from localcloud.openstack import control_plane as openstack
from localcloud.processes import ProcessIdentity, end_all, identify, tethered
from localcloud.services import Service
from localcloud.state import Plan, Running, ServiceState, ServiceStatus, StateDirectory, choose_ports
from localcloud.temporal import control_plane as production

ALREADY_RUNNING = 3  # exit code: another supervisor holds the state directory

_POLL_SECONDS = 0.05
PROBE_SECONDS = 10.0
_FIRST_DELAY_SECONDS = 0.5
_LONGEST_DELAY_SECONDS = 15.0
_FORGIVEN_AFTER_SECONDS = 5.0
_LOG_LIMIT_BYTES = 32 * 1024 * 1024
_STAGES = 3

log = logging.getLogger("supervisor")


class Supervisor:
    def __init__(self, state: StateDirectory, plan: Plan, table: tuple[Service, ...], notes: tuple[str, ...]) -> None:
        self._state = state
        self._table = table
        self._stop = asyncio.Event()
        self._unpublished = False
        self._ready = {service.name: asyncio.Event() for service in table}
        me = identify(os.getpid(), "supervisor")
        assert me is not None
        now = datetime.now(UTC)
        self._running = Running(
            supervisor=me,
            started=now,
            notes=notes,
            services=tuple(
                ServiceStatus(name=service.name, port=service.port, url=service.url, since=now) for service in table
            ),
        )

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        self._publish()
        keepers = [asyncio.create_task(self._keep(service)) for service in self._table]
        keepers.append(asyncio.create_task(self._bound_logs()))
        stopped = asyncio.create_task(self._stop.wait())
        done, _ = await asyncio.wait([stopped, *keepers], return_when=asyncio.FIRST_COMPLETED)
        while stopped not in done and not any(task.exception() for task in done):
            keepers = [task for task in keepers if task not in done]
            done, _ = await asyncio.wait([stopped, *keepers], return_when=asyncio.FIRST_COMPLETED)
        self._running = self._running.model_copy(update={"stopping": True})
        self._publish()
        log.info("stopping")
        for task in keepers:
            task.cancel()
        results = await asyncio.gather(*keepers, return_exceptions=True)
        await self._stop_all()
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _keep(self, service: Service) -> None:
        may_start = asyncio.create_task(self._all_ready(service.after))
        restarts = 0
        delay = _FIRST_DELAY_SECONDS
        loop = asyncio.get_running_loop()
        while True:
            if not service.on_standby:
                await may_start
            process = await self._spawn(service, restarts)
            exited = asyncio.create_task(process.wait())
            if service.on_standby:
                await asyncio.wait([may_start, exited], return_when=asyncio.FIRST_COMPLETED)
                self._give_word(service, process)
            began = loop.time()
            if service.probe is None:
                code = await exited
                if code == 0:
                    log.info("%s is done", service.name)
                    self._change(service.name, ServiceState.DONE, healthy=True, process=None, message="")
                    self._ready[service.name].set()
                    return
            else:
                await self._watch(service, exited)
                code = exited.result()
            self._ready[service.name].clear()
            if loop.time() - began > _FORGIVEN_AFTER_SECONDS:
                delay = _FIRST_DELAY_SECONDS
            restarts += 1
            reason = f"{_ending(code)}; the end of its log: {self._last_words(service.name)}"
            log.warning("%s (pid %d) %s; starting it again in %.1f s", service.name, process.pid, reason, delay)
            self._change(service.name, ServiceState.RESTARTING, healthy=False, process=None, message=reason)
            await asyncio.sleep(delay)
            delay = min(delay * 2, _LONGEST_DELAY_SECONDS)

    async def _all_ready(self, names: Iterable[str]) -> None:
        for name in names:
            await self._ready[name].wait()

    async def _spawn(self, service: Service, restarts: int) -> asyncio.subprocess.Process:
        with self._state.log(service.name).open("ab", buffering=0) as output:
            process = await asyncio.create_subprocess_exec(
                *tethered(service.command, service.death_signal),
                cwd=self._state.root,
                env=service.environment,
                stdin=asyncio.subprocess.PIPE if service.on_standby else asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # A session of its own, so that only the supervisor ends it, in the order of the stages.
                start_new_session=not service.on_standby,
            )
        log.info("%s started as pid %d", service.name, process.pid)
        self._change(
            service.name,
            ServiceState.WAITING if service.on_standby else ServiceState.STARTING,
            healthy=False,
            process=identify(process.pid, service.command[0]),
            restarts=restarts,
        )
        return process

    def _give_word(self, service: Service, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        process.stdin.write(json.dumps(services.settled(service.settled_in)).encode() + b"\n")
        process.stdin.close()
        self._change(service.name, ServiceState.STARTING)

    async def _watch(self, service: Service, exited: asyncio.Task[int]) -> None:
        assert service.probe is not None
        while not exited.done():
            failure = await asyncio.to_thread(service.probe.failure)
            if exited.done():
                return
            self._note_health(service, failure)
            settled = self._status(service.name).state is ServiceState.READY
            await asyncio.wait([exited], timeout=PROBE_SECONDS if settled else _POLL_SECONDS)

    def _note_health(self, service: Service, failure: str | None) -> None:
        before = self._status(service.name)
        if failure is None:
            if before.state is not ServiceState.READY:
                log.info("%s is ready", service.name)
                self._change(service.name, ServiceState.READY, healthy=True, message="")
                self._ready[service.name].set()
        elif before.state is ServiceState.READY:
            log.warning("%s is not healthy: %s", service.name, failure)
            self._change(service.name, ServiceState.UNHEALTHY, healthy=False, message=failure)
        elif before.message != failure:
            self._change(service.name, before.state, healthy=False, message=failure)

    async def _stop_all(self) -> None:
        for stage in range(_STAGES):
            await asyncio.gather(*(self._end(row) for row in self._table if row.stop_stage == stage))

    async def _end(self, service: Service) -> None:
        process = self._status(service.name).process
        if process is not None:
            await asyncio.to_thread(end_all, [process], service.grace_seconds)
            log.info("%s is stopped", service.name)
        if self._status(service.name).state is not ServiceState.DONE:
            self._change(service.name, ServiceState.STOPPED, healthy=False, process=None, message="")

    async def _bound_logs(self) -> None:
        """Truncate large logs, after copying them if the disk has room, and repeat a failed `_publish`."""
        while True:
            await asyncio.sleep(PROBE_SECONDS)
            if self._unpublished:
                self._publish()
            for service in self._table:
                path = self._state.log(service.name)
                if path.exists() and path.stat().st_size > _LOG_LIMIT_BYTES:
                    with contextlib.suppress(OSError):
                        await asyncio.to_thread(shutil.copyfile, path, path.with_suffix(".log.1"))
                    path.open("wb").close()  # safe, because writers append

    def _last_words(self, name: str) -> str:
        lines = tail(self._state.log(name), 1)
        return lines[0][:300] if lines else "none"

    def _status(self, name: str) -> ServiceStatus:
        status = self._running.service(name)
        assert status is not None
        return status

    def _change(self, name: str, state: ServiceState, **changes: bool | int | str | ProcessIdentity | None) -> None:
        before = self._status(name)
        update: dict[str, object] = {**changes, "state": state}
        if before.state is not state:
            update["since"] = datetime.now(UTC)
        after = before.model_copy(update=update)
        if after == before:
            return
        rows = tuple(after if row.name == name else row for row in self._running.services)
        self._running = self._running.model_copy(update={"services": rows})
        self._publish()

    def _publish(self) -> None:
        """Write `services.json`. If the write fails, as on a full disk, the loop of `_bound_logs` repeats it."""
        try:
            self._state.write_running(self._running)
            self._unpublished = False
        except OSError as error:
            log.error("services.json cannot be written: %s", error)
            self._unpublished = True


def tail(path: Path, count: int) -> list[str]:
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - 16_384))
            lines = file.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        return []
    return [line for line in lines if line.strip()][-count:]


def last_message(log: Path, since: datetime) -> str:
    """The last message of a log in text or JSON; empty if nothing was written after `since`."""
    lines = tail(log, 1)
    if not lines or log.stat().st_mtime < since.timestamp():
        return ""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return str(json.loads(lines[0])["message"])
    return lines[0]


def sweep(state: StateDirectory, grace_seconds: float = 2.0) -> list[ProcessIdentity]:
    """End the services of a dead supervisor and return them. The caller must hold the lock."""
    left = state.running()
    if left is None:
        return []
    return end_all((service.process for service in left.services if service.process is not None), grace_seconds)


def prepare(state: StateDirectory, plan: Plan, reserved: list[IO[str]]) -> tuple[dict[str, int], tuple[str, ...]]:
    """Write ports, certificates, kubeconfig and environment; returns the ports and notes for the user.

    Files appended to `reserved` reserve the ports until closed.
    """
    notes = [f"ended {process.program} (pid {process.pid}), left by an earlier run" for process in sweep(state)]
    remembered = state.ports()
    ports, moved = choose_ports(services.port_names(plan), remembered, reserved)
    notes += [
        f"port {remembered[name]} of {name} is taken by another program; it is {ports[name]} now" for name in moved
    ]
    state.write_ports({**remembered, **ports})
    if plan.kubeconfig is not None:
        own_kubeconfig.place(state.kubeconfig, plan.kubeconfig)
    elif services.API_SERVER in plan.services:
        certificates = Certificates(state.certificates)
        certificates.ensure()
        port = ports["kube-apiserver"]
        certificates.write_kubeconfig(state.kubeconfig, "admin", port)
        certificates.write_kubeconfig(state.certificates / "controller-manager.kubeconfig", "controller-manager", port)
    if plan.temporal is not None:
        production.prepare(state, ports, plan.temporal)
    if plan.openstack is not None:
        openstack.prepare(state, ports, plan.openstack)
    state.write_env(services.public_environment(plan, state, ports))
    return ports, tuple(notes)


def main() -> None:
    parser = argparse.ArgumentParser(description="Keep a local deployment running.")
    parser.add_argument("--state", type=Path, required=True)
    state = StateDirectory(parser.parse_args().state)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    try:
        lock = state.lock()
    except BlockingIOError:
        log.error("another supervisor holds %s", state.root)
        sys.exit(ALREADY_RUNNING)
    with lock, _logged_death():
        plan = state.plan()
        reserved: list[IO[str]] = []
        ports, notes = prepare(state, plan, reserved)
        for note in notes:
            log.warning(note)
        asyncio.run(Supervisor(state, plan, services.service_table(plan, state, ports), notes).run())
        for reservation in reserved:
            reservation.close()
        log.info("everything is stopped")


@contextlib.contextmanager
def _logged_death() -> Iterator[None]:
    try:
        yield
    except Exception:
        log.exception("the supervisor failed")
        raise


def _ending(code: int) -> str:
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"


if __name__ == "__main__":
    main()
