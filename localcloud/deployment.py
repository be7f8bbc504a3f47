"""The local deployment for programs: start it, query it, break it, stop it.

A `Deployment` holds no connection, so several programs can use one deployment. Calls block.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from domain.model import Model
from engine.settings import settings
from localcloud import services, supervisor
from localcloud.kubernetes.programs import find_programs
from localcloud.openstack import build as openstack_build
from localcloud.openstack import control_plane as openstack
from localcloud.probes import Probe
from localcloud.processes import ProcessIdentity, identify, tethered
from localcloud.progress import Narrator, Silence
from localcloud.standstill import STANDSTILL_SECONDS, StandstillWatch
from localcloud.state import Cloud, Plan, Running, ServiceState, ServiceStatus, StateDirectory
from localcloud.temporal import choice as choices

STOP_SECONDS = 10.0
# A service that ended this often during `up` will not recover, however long `up` waits.
HOPELESS_RESTARTS = 3
# The interval at which `up` reports what it waits for.
REPORT_SECONDS = 15.0


class DeploymentError(Exception):
    pass


class DeploymentStatus(Model):
    """What `perdure status -o json` prints: the supervisor's report, checked against processes and probes."""

    state_directory: Path
    running: bool
    supervisor_pid: int | None = None
    services: tuple[ServiceStatus, ...] = ()

    @property
    def healthy(self) -> bool:
        return self.running and all(service.healthy for service in self.services)


class Deployment:
    def __init__(self, state_dir: Path | None = None) -> None:
        self.state = StateDirectory(state_dir.absolute()) if state_dir is not None else StateDirectory.default()
        self._child: int | None = None
        """The pid of the supervisor that this object started; None if there is none, or after its end was noticed."""

    def up(
        self,
        *,
        clouds: Sequence[Cloud] = (Cloud.AWS,),
        kubeconfig: Path | None = None,
        only: Sequence[str] | None = None,
        temporal: str | None = None,
        tether: bool = False,
        narrator: Narrator | None = None,
        on_change: Callable[[Running], None] | None = None,
        standstill_seconds: float = STANDSTILL_SECONDS,
    ) -> Running:
        """Start what is not running and wait until all services are ready, without a time limit while they progress.

        If a service cannot start, the other services keep running, and the next call continues. `only` names the
        services (default: all). With `tether` the deployment stops when the calling thread ends, so call this method
        from the main thread.

        Raises:
            DeploymentError: the deployment did not become ready, or already runs with other services or clouds.
        """
        self.start(clouds=clouds, kubeconfig=kubeconfig, only=only, temporal=temporal, tether=tether, narrator=narrator)
        return self.wait_ready(on_change, narrator, standstill_seconds=standstill_seconds)

    def start(
        self,
        *,
        clouds: Sequence[Cloud] = (Cloud.AWS,),
        kubeconfig: Path | None = None,
        only: Sequence[str] | None = None,
        temporal: str | None = None,
        tether: bool = False,
        narrator: Narrator | None = None,
    ) -> bool:
        """Start the supervisor; returns False if one already runs with everything requested.

        Raises:
            DeploymentError: the deployment already runs with other services, clouds, cluster or Temporal, or a name is
                unknown.
            InvalidSettings: the product's processes would reject the settings.
            StateDirectoryError: the state directory cannot be used.
        """
        settings()
        try:
            choice = choices.chosen(temporal)
        except choices.UnknownChoice as error:
            raise DeploymentError(str(error)) from None
        wanted = _chosen_services(only, clouds, own_cluster=kubeconfig is not None, temporal=choice)
        self.state.claim()  # before programs are downloaded or compiled for minutes
        if self._is_held():
            self._check_running_plan(tuple(clouds), wanted, kubeconfig, choice if temporal else None)
            return False
        needs_programs = any(name in services.CLUSTER for name in wanted)
        needs_openstack = any(name in services.OPENSTACK for name in wanted)
        production = choices.find(choice, narrator or Silence()) if services.TEMPORAL in wanted else None
        if production is not None and production.ui is None:
            wanted = tuple(name for name in wanted if name not in services.TEMPORAL_VIEWS)
        plan = Plan(
            clouds=tuple(clouds),
            services=wanted,
            binaries=find_programs(narrator or Silence()) if needs_programs else None,
            kubeconfig=kubeconfig.absolute() if kubeconfig is not None else None,
            openstack=openstack_build.find_programs(narrator or Silence()) if needs_openstack else None,
            temporal=production,
            fsync=os.environ.get("PERDURE_LOCAL_FSYNC", "on") != "off",
        )
        self.state.create(plan)
        self._spawn_supervisor(tether=tether)
        return True

    def wait_ready(
        self,
        on_change: Callable[[Running], None] | None = None,
        narrator: Narrator | None = None,
        *,
        standstill_seconds: float = STANDSTILL_SECONDS,
    ) -> Running:
        """Wait until everything is ready; a service without progress is restarted (`standstill.py`).

        Raises:
            DeploymentError: the supervisor ended, or a service ended or made no progress too often; the error has the
                reason and the end of the log.
        """
        watch = StandstillWatch(standstill_seconds)
        began = time.monotonic()
        reported_at = began
        before: Running | None = None
        restarts: dict[str, int] = {}
        while True:
            running = self._current()
            if running is not None:
                if running != before and on_change is not None:
                    on_change(running)
                before = running
                if running.ready:
                    return running
                for row in running.services:
                    # Restarts during an earlier `up` do not count.
                    restarts.setdefault(row.name, row.restarts)
                self._give_up_on_hopeless(running, restarts)
            if self._child_ended() or (self._child is None and not self.state.is_locked()):
                raise DeploymentError(f"the supervisor ended:\n{self._log_tail('supervisor')}")
            now = time.monotonic()
            self._restart_still(running, watch, narrator, standstill_seconds)
            if narrator is not None and now - reported_at >= REPORT_SECONDS:
                reported_at = now
                narrator.say(f"  {now - began:5.1f} s  {self._waiting_for(running)}")
            time.sleep(0.05)

    def down(self, *, wipe: bool = False) -> bool:
        """Stop everything, and delete the data if `wipe`; returns False if nothing ran.

        Raises:
            DeploymentError: the supervisor does not stop; nothing is removed.
            StateDirectoryError: the directory to remove is no state directory.
        """
        if not self.state.is_ours():
            if wipe and self.state.is_taken():
                self.state.wipe()
            return False
        was_up = self._end_child() or self.state.is_locked()
        # Holding the lock prevents a start in a directory that is being removed.
        with self._lock_when_ended():
            swept = supervisor.sweep(self.state)
            if wipe:
                self.state.wipe()
        return was_up or bool(swept)

    def is_up(self) -> bool:
        return self.state.is_locked()

    def owns_supervisor(self) -> bool:
        return self._child is not None

    def status(self) -> DeploymentStatus:
        running = self._current()
        if running is None:
            last = self.state.running()
            stopped = {"state": ServiceState.STOPPED, "healthy": False, "process": None}
            rows = tuple(row.model_copy(update=stopped) for row in last.services) if last else ()
            return DeploymentStatus(state_directory=self.state.root, running=False, services=rows)
        table = services.service_table(self.state.plan(), self.state, self.state.ports())
        probes = {service.name: service.probe for service in table}
        return DeploymentStatus(
            state_directory=self.state.root,
            running=True,
            supervisor_pid=running.supervisor.pid,
            services=tuple(_checked(row, probes.get(row.name)) for row in running.services),
        )

    def env(self) -> dict[str, str]:
        return self.state.read_env()

    def program_env(self) -> dict[str, str]:
        """The complete environment for a program that must reach only this deployment's clouds."""
        plan = self.state.plan()
        settled = services.settled(openstack.project(self.state) if plan.openstack is not None else None)
        return {**settled, **services.our_environment(plan, self.state, self.state.ports())}

    def service(self, name: str) -> ServiceStatus:
        running = self.state.running()
        row = running.service(name) if running is not None else None
        if row is None:
            raise DeploymentError(f"{self.state.root} has no service {name}")
        return row

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> int:
        process = self.service(name).process
        if process is None or not process.is_alive():
            raise DeploymentError(f"{name} does not run")
        process.send(number)
        return process.pid

    def wait_service(
        self, name: str, *, other_than_pid: int | None = None, standstill_seconds: float = STANDSTILL_SECONDS
    ) -> ServiceStatus:
        """Wait until a service is ready, with another pid than `other_than_pid`; raises DeploymentError if it makes no
        progress.
        """
        watch = StandstillWatch(standstill_seconds)
        while True:
            row = self.service(name)
            if row.settled and row.pid != other_than_pid:
                return row
            if not self.is_up() or watch.stands_still(name, row.pid, self.log(name)):
                raise DeploymentError(
                    f"{name} makes no progress and is {row.state}: {row.message}\n{self._log_tail(name)}"
                )
            time.sleep(0.05)

    def log(self, name: str) -> Path:
        """The log of a service, of `supervisor`, or of `audit` (all requests to the API server)."""
        return self.state.log(name)

    def _current(self) -> Running | None:
        running = self.state.running()
        return running if running is not None and running.supervisor.is_alive() else None

    def _spawn_supervisor(self, *, tether: bool) -> None:
        command = [sys.executable, "-m", "localcloud.supervisor", "--state", str(self.state.root)]
        if tether:
            command = tethered(command, signal.SIGTERM)
        # subprocess.Popen would not let a detached supervisor outlive the Popen object.
        self._child = os.posix_spawn(
            command[0],
            command,
            services.supervisor_environment(self.state),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, self.state.log("supervisor"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
                # The supervisor must not inherit a script's lock or pipe for as long as it runs.
                *((os.POSIX_SPAWN_CLOSE, descriptor) for descriptor in _handed_down()),
            ],
            setsid=True,  # `up` forwards the terminal's Ctrl-C
        )

    def _end_child(self) -> bool:
        process = identify(self._child, "supervisor") if self._child is not None else None
        if process is not None:
            self._end_supervisor(process)
        self._reap()
        return process is not None

    def _lock_when_ended(self) -> IO[str]:
        """End the supervisor that holds the lock; returns the lock. Waits if it has not published its identity yet."""
        deadline = time.monotonic() + 2 * STOP_SECONDS
        while True:
            try:
                return self.state.lock()
            except BlockingIOError:
                running = self._current()
            if time.monotonic() > deadline:
                raise DeploymentError(f"{self.state.root} is in use by a supervisor that does not stop")
            if running is not None:
                self._end_supervisor(running.supervisor)
            else:
                time.sleep(0.02)

    def _end_supervisor(self, process: ProcessIdentity) -> None:
        process.send(signal.SIGTERM)
        if not process.wait_gone(STOP_SECONDS - 1):
            process.send(signal.SIGKILL)  # its services are tied to it and end as well
            process.wait_gone(1)

    def _child_ended(self) -> bool:
        code = self._reap()
        return code is not None and code != supervisor.ALREADY_RUNNING

    def _reap(self) -> int | None:
        if self._child is None:
            return None
        pid, wait_status = os.waitpid(self._child, os.WNOHANG)
        if pid == 0:
            return None
        self._child = None
        return os.waitstatus_to_exitcode(wait_status)

    def _is_held(self) -> bool:
        """Whether a supervisor runs and is not stopping. Waits while one starts, stops or dies; after ten seconds the
        answer is True.
        """
        deadline = time.monotonic() + STOP_SECONDS
        while self.state.is_locked():
            running = self._current()
            if (running is not None and not running.stopping) or time.monotonic() > deadline:
                return True
            time.sleep(0.02)
        self._reap()
        return False

    def _check_running_plan(
        self, clouds: tuple[Cloud, ...], wanted: tuple[str, ...], kubeconfig: Path | None, temporal: str | None
    ) -> None:
        plan = self.state.plan()
        runs = choices.of(plan.temporal)
        if temporal is None:
            wanted = tuple(name for name in wanted if name not in (*services.TEMPORAL_NEEDS, *services.TEMPORAL_VIEWS))
        elif plan.temporal is not None and plan.temporal.ui is None:
            wanted = tuple(name for name in wanted if name not in services.TEMPORAL_VIEWS)
        if temporal is not None and services.TEMPORAL in plan.services and temporal != runs:
            name, _, url = runs.partition("=")
            where = " on another database" if url or temporal.startswith(name) else ""
            raise DeploymentError(
                f"{self.state.root} is already up, with the {name} Temporal{where}; stop it first with `perdure down`"
            )
        absent = [name for name in wanted if name not in plan.services]
        absent += [cloud.value for cloud in clouds if cloud not in plan.clouds]
        other_cluster = kubeconfig is not None and kubeconfig.absolute() != plan.kubeconfig
        if absent or other_cluster:
            lacks = f"without {', '.join(absent)}" if absent else "on another cluster"
            raise DeploymentError(f"{self.state.root} is already up, {lacks}; stop it first with `perdure down`")

    def _give_up_on_hopeless(self, running: Running, restarts_before: Mapping[str, int]) -> None:
        for row in running.services:
            if row.restarts - restarts_before[row.name] >= HOPELESS_RESTARTS and not row.settled:
                reason = f"it {row.message}" if row.message else "it made no progress in any attempt"
                raise DeploymentError(f"{row.name} does not start: {reason}\n{self._log_tail(row.name)}")

    def _restart_still(
        self, running: Running | None, watch: StandstillWatch, narrator: Narrator | None, limit_seconds: float
    ) -> None:
        rows = _under_way(running)
        for row in rows:
            if row.process is not None and watch.stands_still(row.name, row.pid, self.log(row.name)):
                if narrator is not None:
                    narrator.say(
                        f"  {row.name} used no CPU and wrote nothing to its log for {limit_seconds:.0f} s: "
                        "starting it again"
                    )
                row.process.send(signal.SIGKILL)
        # The supervisor pauses before a restart, which is no standstill.
        pauses = running is not None and any(row.state is ServiceState.RESTARTING for row in running.services)
        if not rows and not pauses:
            pid = running.supervisor.pid if running is not None else self._child
            if watch.stands_still("supervisor", pid, self.log("supervisor")):
                raise DeploymentError(
                    f"the supervisor has made no progress for {limit_seconds:.0f} s; `perdure down` stops it\n"
                    f"{self._log_tail('supervisor')}"
                )

    def _waiting_for(self, running: Running | None) -> str:
        if running is None:
            return "waiting for the supervisor to start"
        rows = _under_way(running)
        if not rows:
            unsettled = [row.name for row in running.services if not row.settled]
            return f"waiting for {', '.join(unsettled)}"
        names = ", ".join(f"{row.name} ({row.message or row.state})" for row in rows)
        wrote = supervisor.last_message(self.log(rows[0].name), running.started)
        return f"waiting for {names}" + (f"; {rows[0].name} wrote last: {wrote[:160]}" if wrote else "")

    def _log_tail(self, name: str) -> str:
        path = self.log(name)
        return "\n".join([f"the end of {path}:", *(f"  {line}" for line in supervisor.tail(path, 15))])


def _under_way(running: Running | None) -> list[ServiceStatus]:
    rows = [row for row in running.services if row.state is not ServiceState.WAITING] if running is not None else []
    return [row for row in rows if not row.settled and row.process is not None and row.process.is_alive()]


def _handed_down() -> list[int]:
    opened = (int(name) for name in os.listdir("/proc/self/fd"))
    return [number for number in opened if number > 2 and _is_handed_down(number)]


def _is_handed_down(descriptor: int) -> bool:
    try:
        return os.get_inheritable(descriptor)
    except OSError:  # the listing's own descriptor, already closed
        return False


def _chosen_services(
    only: Sequence[str] | None, clouds: Sequence[Cloud], *, own_cluster: bool, temporal: str
) -> tuple[str, ...]:
    unknown = [name for name in only or () if name not in services.ALL]
    if unknown:
        raise DeploymentError(f"no such service: {', '.join(unknown)}; the services are {', '.join(services.ALL)}")
    chosen = tuple(only) if only is not None else services.ALL
    left_out = {name for cloud, names in services.OF_CLOUD.items() if cloud not in clouds for name in names}
    if own_cluster:
        left_out |= {*services.CLUSTER}
    server, _, url = temporal.partition("=")
    if server == choices.DEVELOPMENT or services.TEMPORAL not in chosen:
        left_out |= {*services.TEMPORAL_NEEDS, *services.TEMPORAL_VIEWS}
    else:
        chosen = (*chosen, *services.TEMPORAL_NEEDS)
    if url:
        left_out.add(services.POSTGRES)
    if not os.environ.get(services.INSTANCES_QUEUES):
        left_out.add(services.EVENTS)
    return tuple(name for name in services.ALL if name in chosen and name not in left_out)


def _checked(row: ServiceStatus, probe: Probe | None) -> ServiceStatus:
    if row.state is ServiceState.DONE:
        return row
    if row.process is None or not row.process.is_alive():
        return row.model_copy(update={"healthy": False})
    failure = probe.failure() if probe is not None else None
    return row.model_copy(update={"healthy": failure is None and row.settled, "message": failure or row.message})
