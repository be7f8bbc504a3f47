"""The local deployment: it comes up, resumes, notices crashes, and never leaves a process or half a build behind."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import ssl
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import boto3
import httpx
import psutil
import pytest
import typer
import yaml
from waiting import PATIENT, until

from localcloud import cli, services, supervisor
from localcloud import deployment as deployments
from localcloud.building import BuildError
from localcloud.deployment import Deployment, DeploymentError
from localcloud.kubernetes import build, programs
from localcloud.kubernetes.certificates import Certificates
from localcloud.processes import ProcessIdentity, identify
from localcloud.progress import Silence
from localcloud.seed import CLAIMS_RBAC
from localcloud.state import (
    LOOPBACK,
    Plan,
    Running,
    ServiceState,
    ServiceStatus,
    StateDirectory,
    StateDirectoryError,
    choose_ports,
)
from tests.running.audit_log import audit_events
from tests.running.failed_servers import end
from tests.running.programs import COMMAND, ROOT, SEED, command_line

if TYPE_CHECKING:
    from mypy_boto3_organizations import OrganizationsClient

pytestmark = pytest.mark.integration

SMALL = (services.ETCD, services.TEMPORAL)
CLUSTER = (services.ETCD, services.API_SERVER)
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def kube(deployment: Deployment, method: str, path: str, body: Mapping[str, object] | None = None) -> dict[str, Any]:
    """The API server's answer to the administrator; 404 answers are empty."""
    certificates = Certificates(deployment.state.certificates)
    context = ssl.create_default_context(cafile=str(certificates.authority))
    context.load_cert_chain(certificates.certificate("admin"), certificates.key("admin"))
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    server = deployment.service(services.API_SERVER).url
    with httpx.Client(verify=context, trust_env=False) as client:
        answer = client.request(
            method, f"{server}{path}", json=body, headers={"Content-Type": kind, "User-Agent": "deployment-test"}
        )
    if answer.status_code == httpx.codes.NOT_FOUND:
        return {}
    answer.raise_for_status()
    return dict(answer.json())


CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
OPERATOR_CONFIG = "/api/v1/namespaces/aws-account-operator/configmaps/aws-account-operator-configmap"


def create_config_map(deployment: Deployment, name: str, **metadata: object) -> dict[str, Any]:
    return kube(deployment, "POST", CONFIG_MAPS, {"metadata": {"name": name, **metadata}, "data": {"a": "b"}})


def processes_in(directory: Path) -> list[str]:
    """The command lines of all processes that work in the directory; services work in their state directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if Path(os.readlink(process / "cwd")) == directory:
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return found


def typed(*arguments: str, **variables: str) -> subprocess.Popen[str]:
    """`perdure up` and its kin, as a person starts them."""
    return subprocess.Popen(
        command_line(COMMAND, *arguments),
        cwd=ROOT,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def seed(deployment: Deployment, *arguments: str, **variables: str) -> None:
    """Prepare the cluster, as `perdure up` does."""
    environ = {**deployment.program_env(), **variables}
    subprocess.run(command_line(SEED, *arguments), cwd=ROOT, env=environ, check=True, capture_output=True)


class LineRecorder:
    """Records what a person would see."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)

    def advance(self, what: str, done: int, total: int) -> None:
        self.lines.append(f"{what}: {done} of {total}")


def only(*wanted: str) -> str:
    """The --without that leaves these services."""
    return ",".join(name for name in services.ALL if name not in wanted)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A deployment of few services, which each test leaves as it has found it."""
    deployment = Deployment(tmp_path_factory.mktemp("small"))
    deployment.up(only=SMALL, tether=True)
    yield deployment
    end(deployment)


# Up and down.


def test_everything_that_was_asked_for_is_healthy(deployment: Deployment) -> None:
    status = deployment.status()

    assert status.running
    assert status.healthy
    of_postgres = {*services.TEMPORAL_NEEDS, *services.TEMPORAL_VIEWS}
    assert [row.name for row in status.services] == [name for name in services.SERVERS if name not in of_postgres]


def test_the_cluster_serves_our_kinds_and_holds_the_operators_configuration(deployment: Deployment) -> None:
    kinds = kube(deployment, "GET", "/apis/aws.managed.openshift.io/v1alpha1")["resources"]
    config = kube(deployment, "GET", OPERATOR_CONFIG)["data"]

    assert {"accountpools", "accounts", "accountclaims"} <= {kind["name"] for kind in kinds}
    assert config["root"].startswith("r-")
    assert config["base"].startswith("ou-")


def test_the_cluster_is_ready_for_resource_claims(deployment: Deployment) -> None:
    kinds = kube(deployment, "GET", "/apis/poolboy.gpte.redhat.com/v1")["resources"]
    written = {obj["metadata"]["name"]: obj for obj in yaml.safe_load_all(CLAIMS_RBAC.read_text())}

    assert {f"{kind}s" for kind in ("resourceclaim", "resourcehandle", "resourcepool", "resourceprovider")} <= {
        kind["name"] for kind in kinds
    }
    assert kube(deployment, "GET", "/api/v1/namespaces/poolboy")["status"]["phase"] == "Active"
    assert "perdure-claims-approve" in written
    for name, obj in written.items():
        if obj["kind"] == "ClusterRole":
            assert kube(deployment, "GET", f"{RBAC}/clusterroles/{name}")["rules"] == obj["rules"]
        else:
            assert kube(deployment, "GET", f"{RBAC}/clusterrolebindings/{name}")["subjects"] == obj["subjects"]


def test_a_cluster_is_prepared_for_another_claims_domain_except_in_observe_mode(fresh: Deployment) -> None:
    fresh.up(only=CLUSTER)
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

    seed(fresh, "aws", "--foreign-cluster", PERDURE_MODE="observe")
    assert kube(fresh, "GET", definitions)["items"] == []
    assert kube(fresh, "GET", "/api/v1/namespaces/aws-account-operator") == {}

    variables = {"OPERATOR_DOMAIN": "claims.example.com", "OPERATOR_NAMESPACE": "labs"}
    seed(fresh, "--foreign-cluster", **variables)
    assert kube(fresh, "GET", f"{RBAC}/clusterroles/perdure-claims-worker") == {}, "rights there are not ours to give"

    seed(fresh, **variables)
    rules = kube(fresh, "GET", f"{RBAC}/clusterroles/perdure-claims-worker")["rules"]
    groups = {group for rule in rules for group in rule["apiGroups"]}
    assert groups == {"claims.example.com", "user.openshift.io", ""}
    until(lambda: "resources" in kube(fresh, "GET", "/apis/claims.example.com/v1"), "the kinds are served")
    assert kube(fresh, "GET", "/api/v1/namespaces/labs")["metadata"]["name"] == "labs"
    assert kube(fresh, "GET", "/api/v1/namespaces/poolboy") == {}


def test_up_does_not_overwrite_what_people_configured(deployment: Deployment) -> None:
    before = kube(deployment, "GET", OPERATOR_CONFIG)["data"]["account-limit"]
    kube(deployment, "PATCH", OPERATOR_CONFIG, {"data": {"account-limit": "7"}})
    try:
        seed(deployment, "aws")

        assert kube(deployment, "GET", OPERATOR_CONFIG)["data"]["account-limit"] == "7"
    finally:
        kube(deployment, "PATCH", OPERATOR_CONFIG, {"data": {"account-limit": before}})


def test_up_applies_the_definitions_that_differ_and_no_others(deployment: Deployment) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    changed, other = f"{path}/accounts.aws.managed.openshift.io", f"{path}/accountpools.aws.managed.openshift.io"
    before, untouched = kube(deployment, "GET", changed), kube(deployment, "GET", other)
    (served,) = before["spec"]["versions"]
    kube(deployment, "PATCH", changed, {"spec": {"versions": [{**served, "additionalPrinterColumns": []}]}})
    requested = len(audit_events(deployment))

    seed(deployment, "aws")

    assert kube(deployment, "GET", changed)["spec"] == before["spec"]
    assert kube(deployment, "GET", other)["metadata"] == untouched["metadata"]
    events = audit_events(deployment)[requested:]
    patched = [event["requestURI"] for event in events if event["verb"] == "patch" and "seed" in event["userAgent"]]
    assert any(uri.startswith(changed) for uri in patched)
    assert not any(uri.startswith(other) for uri in patched)


def test_owned_objects_are_collected_when_their_owner_is_deleted(deployment: Deployment) -> None:
    uid = create_config_map(deployment, "owner")["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
    create_config_map(deployment, "owned", ownerReferences=[reference])

    kube(deployment, "DELETE", f"{CONFIG_MAPS}/owner")

    until(lambda: not kube(deployment, "GET", f"{CONFIG_MAPS}/owned"), "owned is deleted")


def test_a_deleted_namespace_takes_its_objects_along(deployment: Deployment) -> None:
    path = "/api/v1/namespaces/deleted"
    kube(deployment, "POST", "/api/v1/namespaces", {"metadata": {"name": "deleted"}})
    kube(deployment, "POST", f"{path}/configmaps", {"metadata": {"name": "inside"}})

    kube(deployment, "DELETE", path)

    until(lambda: not kube(deployment, "GET", path), "the namespace is gone")


def test_every_request_is_audited_with_its_user_agent(deployment: Deployment) -> None:
    kube(deployment, "GET", "/api/v1/namespaces")

    def audited() -> bool:
        mine = [event for event in audit_events(deployment) if event["userAgent"] == "deployment-test"]
        return "/api/v1/namespaces" in {event["requestURI"] for event in mine}

    until(audited, "the request is in the audit log")


def test_the_env_file_is_sourced_by_a_shell(deployment: Deployment) -> None:
    script = f'. "{deployment.state.env_file}" && echo "$KUBECONFIG $TEMPORAL_ADDRESS $AWS_ENDPOINT_URL"'
    printed = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.split()

    env = deployment.env()
    assert printed == [env["KUBECONFIG"], env["TEMPORAL_ADDRESS"], env["AWS_ENDPOINT_URL"]]


def test_nothing_listens_beyond_loopback(deployment: Deployment) -> None:
    pids = {row.pid for row in deployment.status().services if row.pid}

    addresses = _listening_addresses(pids)

    assert addresses
    assert {address for address in addresses if not address.startswith("127.")} == set()


def test_objects_survive_down_and_a_crash_and_are_gone_after_a_wipe(fresh: Deployment) -> None:
    fresh.up(only=CLUSTER)
    create_config_map(fresh, "kept")
    ports = fresh.state.ports()

    fresh.down()
    left = processes_in(fresh.state.root)
    fresh.up(only=CLUSTER)

    assert left == []
    assert fresh.state.ports() == ports
    assert kube(fresh, "GET", f"{CONFIG_MAPS}/kept")["data"] == {"a": "b"}

    crashed = {name: fresh.kill(name) for name in (services.API_SERVER, services.ETCD)}
    for name, pid in crashed.items():
        fresh.wait_service(name, other_than_pid=pid)
    assert kube(fresh, "GET", f"{CONFIG_MAPS}/kept")["data"] == {"a": "b"}

    fresh.down(wipe=True)
    assert not fresh.state.root.exists()


def test_the_products_processes_run_and_are_started_again(fresh: Deployment) -> None:
    fresh.up()

    assert fresh.status().healthy
    pid = fresh.kill(services.WORKER)
    assert fresh.wait_service(services.WORKER, other_than_pid=pid).restarts == 1

    fresh.down()
    assert processes_in(fresh.state.root) == []


def test_down_ends_a_supervisor_that_has_not_said_a_word_yet(fresh: Deployment) -> None:
    fresh.start(only=(services.TEMPORAL,))

    assert fresh.down()

    assert not fresh.is_up()
    assert processes_in(fresh.state.root) == []
    assert not fresh.owns_supervisor()


# Holds the directory as a supervisor in its first moments does, and says only then who it is.
BEGINNER = """
import os, signal, sys, time
from datetime import UTC, datetime
from pathlib import Path
from localcloud.processes import identify
from localcloud.state import Running, StateDirectory

state = StateDirectory(Path(sys.argv[1]))
lock = state.lock()
print("held", flush=True)
time.sleep(1)
state.write_running(Running(supervisor=identify(os.getpid(), "supervisor"), started=datetime.now(UTC)))
signal.pause()
"""


def test_down_waits_for_a_supervisor_that_has_only_begun(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path / "state")
    state.create(Plan(clouds=(), services=(), binaries=None, kubeconfig=None))
    command = [sys.executable, "-c", BEGINNER, str(state.root)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True) as beginner:
        try:
            assert beginner.stdout is not None
            assert beginner.stdout.readline() == "held\n"

            assert Deployment(state.root).down(wipe=True)

            assert beginner.wait(PATIENT) == -signal.SIGTERM
        finally:
            beginner.kill()
    assert not state.root.exists()


def test_nothing_is_removed_while_a_process_holds_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployments, "STOP_SECONDS", 0.05)
    state = StateDirectory(tmp_path / "state")
    state.create(Plan(clouds=(), services=(), binaries=None, kubeconfig=None))
    retained = state.data("temporal") / "temporal.db"
    retained.write_text("lifecycles")

    with state.lock(), pytest.raises(DeploymentError, match="does not stop"):
        Deployment(state.root).down(wipe=True)

    assert retained.read_text() == "lifecycles"


def test_two_deployments_run_side_by_side(deployment: Deployment, small: Deployment) -> None:
    assert small.status().healthy
    assert deployment.status().healthy
    assert set(small.state.ports().values()).isdisjoint(deployment.state.ports().values())


def test_a_taken_port_is_replaced_and_said(fresh: Deployment) -> None:
    fresh.up(only=(services.TEMPORAL,))
    fresh.down()
    port = fresh.state.ports()["temporal-ui"]
    with socket.create_server((LOOPBACK, port)):
        running = fresh.up(only=(services.TEMPORAL,))

    assert fresh.state.ports()["temporal-ui"] != port
    assert [note for note in running.notes if f"port {port} of temporal-ui" in note]


def test_the_users_own_cluster_is_used_when_given(deployment: Deployment, fresh: Deployment) -> None:
    fresh.up(kubeconfig=deployment.state.kubeconfig, only=(*services.CLUSTER, services.PREPARATION))

    assert [row.name for row in fresh.status().services] == [services.PREPARATION]
    assert fresh.env()["KUBECONFIG"] == str(deployment.state.kubeconfig)
    assert "created CustomResourceDefinition" not in fresh.log(services.PREPARATION).read_text()


# Crashes.


def test_a_crashed_service_is_named_and_started_again(small: Deployment) -> None:
    before = small.service(services.TEMPORAL).restarts
    pid = small.kill(services.TEMPORAL)

    back = small.wait_service(services.TEMPORAL, other_than_pid=pid)

    assert back.restarts == before + 1
    assert small.status().healthy
    assert f"temporal (pid {pid}) was ended by SIGKILL" in small.log("supervisor").read_text()


def test_a_detached_deployment_holds_no_open_file_of_its_starter(fresh: Deployment) -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    fresh.up(only=(services.ETCD,))
    os.close(writing)
    os.set_blocking(reading, False)

    assert os.read(reading, 1) == b"", "a process still holds the pipe's other end"

    os.close(reading)


def test_a_hung_service_is_shown_as_unhealthy(small: Deployment) -> None:
    small.kill(services.TEMPORAL, signal.SIGSTOP)
    try:
        # The kernel stops the threads when one of them is next scheduled, so a busy machine may answer once more.
        until(lambda: not small.status().healthy, "it is unhealthy")
    finally:
        small.kill(services.TEMPORAL, signal.SIGCONT)
    until(lambda: small.status().healthy, "it is healthy again")


def test_a_service_that_cannot_start_is_named_with_its_last_words(fresh: Deployment) -> None:
    fresh.up(only=(services.ETCD,))
    fresh.down()
    wal = next((fresh.state.root / "data" / "etcd").rglob("*.wal"))
    wal.write_bytes(b"not a log")

    with pytest.raises(DeploymentError, match=r"(?s)etcd does not start.*the end of .*etcd\.log"):
        fresh.up(only=SMALL)

    until(lambda: fresh.service(services.TEMPORAL).settled, "what can run is left running")


# Slow services and those that hang, with a script in etcd's place that runs the real one in the end.

USES_CPU = "end=$(($(date +%s) + 6)); while [ $(date +%s) -lt $end ]; do :; done"
WRITES_LOG = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo step $i; sleep 0.5; done"
STANDS_STILL = "sleep 300"
STANDSTILL_SECONDS = 2.0


@pytest.fixture
def slow_etcd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes etcd run some shell commands before it begins to serve."""
    real = programs.find_programs(Silence())
    directory = tmp_path / "programs"
    directory.mkdir()
    for name, program in (
        ("kube-apiserver", real.kube_apiserver),
        ("kube-controller-manager", real.kube_controller_manager),
    ):
        (directory / name).symlink_to(program)

    def install(commands: str) -> None:
        script = directory / ".etcd"
        script.write_text(f'#!/bin/sh\n{commands}\nexec {real.etcd} "$@"\n')
        script.chmod(0o755)
        script.rename(directory / "etcd")

    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(directory))
    return install


@pytest.mark.parametrize("commands", [USES_CPU, WRITES_LOG], ids=["uses CPU", "writes to its log"])
def test_a_service_that_is_slow_but_moves_is_waited_for(
    fresh: Deployment, slow_etcd: Callable[[str], None], commands: str
) -> None:
    slow_etcd(commands)

    running = fresh.up(only=(services.ETCD,), standstill_seconds=STANDSTILL_SECONDS)

    etcd = running.service(services.ETCD)
    assert etcd is not None
    assert etcd.restarts == 0


def test_a_service_that_hangs_once_is_started_again(
    fresh: Deployment, tmp_path: Path, slow_etcd: Callable[[str], None]
) -> None:
    slow_etcd(f"[ -e {tmp_path}/stood ] || {{ touch {tmp_path}/stood; {STANDS_STILL}; }}")
    message = LineRecorder()

    running = fresh.up(only=SMALL, narrator=message, standstill_seconds=STANDSTILL_SECONDS)

    etcd, temporal = running.service(services.ETCD), running.service(services.TEMPORAL)
    assert etcd is not None
    assert temporal is not None
    assert (etcd.restarts, temporal.restarts) == (1, 0)
    assert any("etcd used no CPU and wrote nothing to its log for 2 s" in line for line in message.lines)


def test_running_services_stay_and_the_next_up_goes_on_when_a_service_hangs(
    fresh: Deployment, slow_etcd: Callable[[str], None]
) -> None:
    slow_etcd(STANDS_STILL)

    with pytest.raises(DeploymentError, match="etcd does not start"):
        fresh.up(only=SMALL, standstill_seconds=STANDSTILL_SECONDS)

    temporal = fresh.wait_service(services.TEMPORAL)
    slow_etcd("true")
    assert fresh.up(only=SMALL, standstill_seconds=STANDSTILL_SECONDS).service(services.TEMPORAL) == temporal


def test_up_says_what_it_waits_for(
    fresh: Deployment, slow_etcd: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployments, "REPORT_SECONDS", 0.5)
    slow_etcd(WRITES_LOG)
    message = LineRecorder()

    fresh.up(only=(services.ETCD,), narrator=message, standstill_seconds=STANDSTILL_SECONDS)

    assert any(re.search(r"waiting for etcd \(.+\); etcd wrote last: step \d+", line) for line in message.lines)


def test_nothing_outlives_a_killed_supervisor_and_up_resumes(fresh: Deployment) -> None:
    running = fresh.up(only=SMALL)

    running.supervisor.send(signal.SIGKILL)
    until(lambda: processes_in(fresh.state.root) == [], "no process left")
    assert not fresh.status().running

    fresh.up(only=SMALL)
    assert fresh.status().healthy


def test_the_cloud_survives_a_killed_supervisor(fresh: Deployment) -> None:
    running = fresh.up(only=(services.AWS,))
    root = _organizations(fresh).list_roots()["Roots"][0]["Id"]
    unit = _organizations(fresh).create_organizational_unit(ParentId=root, Name="kept")["OrganizationalUnit"]["Id"]

    running.supervisor.send(signal.SIGKILL)
    until(lambda: processes_in(fresh.state.root) == [], "no process left")
    fresh.up(only=(services.AWS,))

    described = _organizations(fresh).describe_organizational_unit(OrganizationalUnitId=unit)
    assert described["OrganizationalUnit"]["Name"] == "kept"


def test_processes_of_a_dead_supervisor_are_ended_before_the_next_start(fresh: Deployment) -> None:
    running = fresh.up(only=(services.TEMPORAL,))
    running.supervisor.send(signal.SIGKILL)
    with subprocess.Popen(["sleep", "300"], start_new_session=True) as left:
        assert running.supervisor.wait_gone(PATIENT)
        row = running.services[0].model_copy(update={"process": identify(left.pid, "sleep")})
        fresh.state.write_running(running.model_copy(update={"services": (row,)}))

        notes = fresh.up(only=(services.TEMPORAL,)).notes

        assert left.wait(PATIENT) == -signal.SIGTERM
    assert any(f"pid {left.pid}" in note for note in notes)


def test_a_stranger_with_a_recorded_pid_is_never_ended(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path)
    stranger = subprocess.Popen(["sleep", "300"], start_new_session=True)
    try:
        true = identify(stranger.pid, "etcd")
        assert true is not None
        for false in (true.model_copy(update={"start_ticks": 1}), true.model_copy(update={"boot_id": "another"})):
            _record(state, false)

            assert supervisor.sweep(state) == []
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


# The command line.


def test_up_in_the_foreground_stops_everything_on_ctrl_c(tmp_path: Path) -> None:
    state = tmp_path / "state"
    up = typed("up", "--state", str(state), "--without", only(*SMALL))
    assert up.stdout is not None
    try:
        printed = next(line for line in up.stdout if "Everything is ready" in line or "does not" in line)
        up.send_signal(signal.SIGINT)
        up.wait(PATIENT)
    finally:
        up.kill()
        output, _ = up.communicate()

    assert processes_in(state) == []
    assert "Everything is ready" in printed
    assert "Stopped in" in output


def test_ctrl_c_says_so_where_it_could_not_stop_everything(
    fresh: Deployment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> Running:
        raise KeyboardInterrupt

    def stubborn(*_: object, **__: object) -> bool:
        raise DeploymentError("it does not end")

    with monkeypatch.context() as patch:
        patch.setattr(cli, "end_as_by_ctrl_c", lambda: None)
        patch.setattr(Deployment, "start", lambda *_, **__: True)
        patch.setattr(Deployment, "owns_supervisor", lambda _: True)
        patch.setattr(Deployment, "wait_ready", interrupted)
        patch.setattr(Deployment, "down", stubborn)
        with pytest.raises(typer.Exit) as ended:
            cli.up(state=fresh.state.root, detach=True)

    assert ended.value.exit_code == 1
    output = capsys.readouterr()
    assert "it does not end" in output.err
    assert "Stopped" not in output.out


def test_nothing_outlives_a_killed_up(tmp_path: Path) -> None:
    state = tmp_path / "state"
    up = typed("up", "--state", str(state), "--without", only(*SMALL))
    try:
        until(lambda: Deployment(state).status().healthy, "everything is up")
    finally:
        up.kill()
        up.communicate()

    until(lambda: processes_in(state) == [], "no process left")


def test_up_on_a_running_deployment_says_so(deployment: Deployment) -> None:
    without = only(*services.SERVERS)
    up = typed("up", "--state", str(deployment.state.root), "--detach", "--without", without)
    output, _ = up.communicate(timeout=PATIENT)

    assert up.returncode == 0
    assert f"{deployment.state.root} is already up" in output


def test_up_refuses_a_running_deployment_that_lacks_what_is_asked(small: Deployment) -> None:
    with pytest.raises(DeploymentError, match="already up, without kube-apiserver"):
        small.up(only=CLUSTER)

    assert small.status().healthy


def test_status_is_printed_for_programs(deployment: Deployment) -> None:
    status = typed("status", "--state", str(deployment.state.root), "-o", "json")
    output, _ = status.communicate(timeout=PATIENT)
    rows = {row["name"]: row for row in json.loads(output)["services"]}

    assert status.returncode == 0
    assert rows["temporal"]["healthy"] is True
    assert rows["temporal"]["url"].startswith("http://127.0.0.1:")


def test_status_of_nothing_says_so_and_fails(tmp_path: Path) -> None:
    status = typed("status", "--state", str(tmp_path / "none"))
    output, _ = status.communicate(timeout=PATIENT)

    assert status.returncode == 1
    assert "Nothing runs" in output


def test_a_directory_with_other_files_is_neither_used_nor_wiped(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    deployment = Deployment(tmp_path)

    with pytest.raises(StateDirectoryError):
        deployment.up(only=(services.TEMPORAL,))
    with pytest.raises(StateDirectoryError, match="nothing was removed"):
        deployment.down(wipe=True)

    assert (tmp_path / "thesis.txt").exists()


def test_down_says_what_it_has_removed_and_no_more(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/thesis.txt").write_text("years of work")
    StateDirectory(tmp_path / "ours").create(Plan(clouds=(), services=(), binaries=None, kubeconfig=None))

    def down(name: str) -> tuple[int, str]:
        command = typed("down", "--wipe", "--state", str(tmp_path / name))
        output, _ = command.communicate(timeout=PATIENT)
        return command.returncode, output.replace(str(tmp_path), "").strip()

    assert down("thesis") == (1, "/thesis is not a state directory of perdure; nothing was removed")
    assert down("nothing") == (0, "Nothing runs in /nothing.")
    assert down("ours") == (0, "Nothing runs in /ours. Its data was deleted.")


# Ports.


def test_remembered_ports_are_reused_while_free() -> None:
    first, _ = choose_ports(("a", "b"), {})

    assert choose_ports(("a", "b"), first) == (first, [])


def test_no_port_is_given_twice() -> None:
    ports, _ = choose_ports(tuple(f"service-{number}" for number in range(200)), {})

    assert len(set(ports.values())) == 200


def test_a_reserved_port_is_given_to_no_other_deployment_before_its_server_listens() -> None:
    reserved: list[IO[str]] = []
    first, _ = choose_ports(("a",), {}, reserved)
    try:
        assert choose_ports(("a",), first)[1] == ["a"]
    finally:
        for reservation in reserved:
            reservation.close()
    assert choose_ports(("a",), first) == (first, [])


# The build, with a stand-in for the Go toolchain: what is tested is what an interruption leaves.

FAKE_GO = """#!/bin/sh
case "$1" in
env) echo go1.26.0 ;;
mod) case "$2" in download) echo "{\\"Dir\\": \\"$GO_MODULE\\"}" ;; edit) echo "$3" > edited ;; esac ;;
list) printf 'a\\nb\\nc\\n' ;;
build)
    for argument; do case "$argument" in */made/) bin=$argument ;; esac; done
    mkdir -p "$bin"
    echo a
    echo half > "$bin/kube-apiserver"
    touch "$GO_STARTED"
    %s
    for name in server kube-apiserver kube-controller-manager; do echo whole > "$bin/$name"; done
    ;;
esac
"""


@pytest.fixture
def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Puts a `go` on PATH that runs the given words in the middle of a build; returns the file that it then touches."""

    def install(in_the_middle: str) -> Path:
        go = tmp_path / "go" / "go"
        go.parent.mkdir(exist_ok=True)
        go.write_text(FAKE_GO % in_the_middle)
        go.chmod(go.stat().st_mode | stat.S_IXUSR)
        return tmp_path / "started"

    monkeypatch.setenv("PATH", f"{tmp_path / 'go'}:{os.environ['PATH']}")
    monkeypatch.setenv("GO_STARTED", str(tmp_path / "started"))
    helper = tmp_path / "module" / build.HELPER
    helper.parent.mkdir(parents=True)
    helper.touch()
    helper.with_name("interfaces.go").touch()
    monkeypatch.setenv("GO_MODULE", str(tmp_path / "module"))
    monkeypatch.setenv("PERDURE_DOWNLOADS", "off")
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return install


BUILD = """
import sys
from pathlib import Path

from localcloud.kubernetes import build
from localcloud.progress import Silence

build.build(Path(sys.argv[1]), Silence())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_build_leaves_nothing_that_is_used(
    tmp_path: Path, fake_go: Callable[[str], Path], number: signal.Signals
) -> None:
    cache = tmp_path / "cache"
    started = fake_go("exec sleep 300")
    builder = subprocess.Popen([sys.executable, "-c", BUILD, str(cache)], cwd=ROOT, stderr=subprocess.DEVNULL)
    until(started.exists, "the build began")

    working = next(cache.glob(".building-*"))
    builder.send_signal(number)
    builder.wait(PATIENT)

    assert build.cached(cache) is None
    until(lambda: processes_in(working) == [], "the compiler has ended")
    fake_go("true")
    home = build.build(cache, Silence())
    assert (home / "kube-apiserver").read_text() == "whole\n"
    assert {path.name for path in cache.iterdir()} == {"lock", home.name}


def test_up_that_is_interrupted_while_it_builds_says_that_nothing_was_started(
    tmp_path: Path, fake_go: Callable[[str], Path]
) -> None:
    started = fake_go("exec sleep 300")
    up = typed("up", "--state", str(tmp_path / "state"), XDG_CACHE_HOME=str(tmp_path / "cache"))
    try:
        until(started.exists, "the build began")
        up.send_signal(signal.SIGINT)
        output, _ = up.communicate(timeout=PATIENT)
    finally:
        up.kill()

    assert "Nothing was started." in output
    assert up.returncode == 130


def test_a_failed_build_says_why_and_leaves_nothing(tmp_path: Path, fake_go: Callable[[str], Path]) -> None:
    fake_go("echo no space left on device; exit 1")

    with pytest.raises(BuildError, match="no space left on device"):
        build.build(tmp_path / "cache", Silence())

    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["lock"]


def test_the_helper_of_unit_tests_is_not_compiled(tmp_path: Path, fake_go: Callable[[str], Path]) -> None:
    started = fake_go('{ cat edited; find . -name "*.go" -path "*generic*"; } > "$GO_STARTED"')

    build.build(tmp_path / "cache", Silence())

    replaced, *compiled = started.read_text().splitlines()
    assert replaced == "-replace=k8s.io/apiserver=./apiserver"
    assert compiled == ["./apiserver/pkg/admission/plugin/policy/generic/interfaces.go"]
    assert (tmp_path / "module" / build.HELPER).is_file()


def test_a_second_builder_waits_for_the_first(tmp_path: Path, fake_go: Callable[[str], Path]) -> None:
    cache = tmp_path / "cache"
    started = fake_go("sleep 1; echo $$ >> $GO_STARTED")
    builder = subprocess.Popen([sys.executable, "-c", BUILD, str(cache)], cwd=ROOT)
    until(started.exists, "the build began")

    build.build(cache, Silence())

    assert builder.wait(PATIENT) == 0
    assert len(started.read_text().split()) == 1


def test_programs_named_by_the_user_are_preferred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in build.PACKAGES:
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))

    assert programs.find_programs(Silence(), tmp_path / "cache").etcd == tmp_path / "etcd"


def _record(state: StateDirectory, process: ProcessIdentity) -> None:
    row = ServiceStatus(name="etcd", state=ServiceState.READY, process=process)
    state.write_running(Running(supervisor=process, started=datetime.now(UTC), services=(row,)))


def _organizations(deployment: Deployment) -> OrganizationsClient:
    env = deployment.env()
    return boto3.client(
        "organizations",
        endpoint_url=env["AWS_ENDPOINT_URL"],
        region_name=env["AWS_DEFAULT_REGION"],
        aws_access_key_id=env["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=env["AWS_SECRET_ACCESS_KEY"],
    )


def _listening_addresses(pids: set[int]) -> set[str]:
    connections = [item for pid in pids for item in psutil.Process(pid).net_connections(kind="tcp")]
    return {item.laddr.ip for item in connections if item.status == psutil.CONN_LISTEN}
