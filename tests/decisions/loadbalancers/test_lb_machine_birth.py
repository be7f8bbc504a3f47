"""What a machine is given at birth: rights, kubeconfig, and user data as its image expects them."""

from __future__ import annotations

import base64
import shutil
import subprocess
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from lb_objects import balancer, machine

from domain.loadbalancers.machine.api_access import Credentials, access_objects, access_status, kubeconfig
from domain.loadbalancers.machine.keepalived import HEALTH_SCRIPT, keepalived_conf
from domain.loadbalancers.machine.user_data import MachineSettings, promtail_yaml, user_data
from domain.loadbalancers.resources import LoadBalancerMachine, LogForward
from domain.writes import merge

NAME = "web--shop-aaaa-00001"
GROUP = "yawol.stackit.cloud"
Json = dict[str, Any]


def born(settings: MachineSettings | None = None, **changes: Any) -> str:
    return user_data(
        machine(),
        balancer(**changes),
        virtual_address="10.1.0.5",
        kubeconfig="the kubeconfig",
        settings=settings or MachineSettings(),
    )


def files(text: str) -> dict[str, Json]:
    return {each["path"]: each for each in yaml.safe_load(text)["write_files"]}


def content(text: str, path: str) -> str:
    found = files(text)[path]
    return base64.b64decode(found["content"]).decode() if found.get("encoding") == "b64" else found["content"]


# --- user data ---


def test_user_data_is_a_cloud_config_behind_an_empty_line() -> None:
    assert born().startswith("\n#cloud-config\n")
    assert list(yaml.safe_load(born())) == ["write_files", "runcmd"]


def test_files_are_where_the_image_expects_them_with_their_owners() -> None:
    assert [
        (path, each.get("owner"), each.get("permissions"), each.get("encoding")) for path, each in files(born()).items()
    ] == [
        ("/etc/chrony/chrony.conf", "root:root", "0644", "b64"),
        ("/etc/yawol/kubeconfig", "yawol:yawol", "0600", "b64"),
        ("/etc/keepalived/keepalived.conf", "root:root", "0644", "b64"),
        ("/var/lib/yawol/check_yawollet_health.sh", "root:root", "0755", "b64"),
        ("/etc/promtail/promtail.yaml", "promtail", "0644", "b64"),
        ("/etc/yawol/env.conf", None, None, None),
    ]
    assert content(born(), "/etc/yawol/kubeconfig") == "the kubeconfig"


def test_the_agent_is_started_with_its_arguments() -> None:
    text = born()
    assert content(text, "/etc/yawol/env.conf") == (
        'YAWOLLET_ARGS="--namespace=lbs --loadbalancer-name=web--shop '
        f"--loadbalancer-machine-name={NAME} --listen-address=10.1.0.5 "
        '--health-probe-bind-address=127.0.0.1:8080 --kubeconfig /etc/yawol/kubeconfig "'
    )
    slow = born(MachineSettings(requeue_time=timedelta(minutes=1)))
    assert content(slow, "/etc/yawol/env.conf").endswith(' --requeue-time=60 "')


def test_the_arguments_can_be_sourced_by_a_shell(tmp_path: Path) -> None:
    (tmp_path / "env.conf").write_text(content(born(), "/etc/yawol/env.conf"))
    script = '. ./env.conf; set -- $YAWOLLET_ARGS; echo $#; echo "$7"'
    shell = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert shell.stdout.split() == ["7", "/etc/yawol/kubeconfig"]


def commands(text: str) -> list[str]:
    return [" ".join(each) for each in yaml.safe_load(text)["runcmd"]]


def test_services_are_started_in_the_known_order() -> None:
    assert commands(born()) == [
        "rc-service chronyd restart",
        "rc-service promtail stop",
        "rc-update del promtail default",
        "rc-service sshd stop",
        "rc-update del sshd default",
        "rc-service keepalived restart",
        "rc-service envoy restart",
        "rc-service yawollet restart",
    ]


def test_log_forwarding_and_debugging_start_their_services() -> None:
    logging = commands(born(spec={"options": {"logForward": {"enabled": True}}}))
    assert logging[1:3] == ["rc-service promtail start", "rc-update add promtail default"]
    debugging = commands(born(spec={"debugSettings": {"enabled": True}}))
    assert debugging[3:5] == ["rc-service sshd start", "rc-update add sshd default"]
    ad_hoc = commands(born(metadata={"annotations": {f"{GROUP}/adHocDebug": "true"}}))
    assert ad_hoc[3] == "rc-service sshd stop"


@pytest.mark.parametrize(
    ("settings", "lines"),
    [
        (MachineSettings(), ["pool pool.ntp.org iburst"]),
        (MachineSettings(ntp_servers=("a", "b")), ["server a iburst", "server b iburst"]),
        (MachineSettings(ntp_pools=("p",), ntp_servers=("a",)), ["pool p iburst", "server a iburst"]),
    ],
)
def test_the_time_comes_from_where_the_installation_says(settings: MachineSettings, lines: list[str]) -> None:
    assert content(born(settings), "/etc/chrony/chrony.conf").splitlines() == [
        *lines,
        "driftfile /var/lib/chrony/chrony.drift",
        "rtcsync",
        "cmdport 0",
        "maxupdateskew 100.0",
        "makestep 1 3",
    ]


# --- promtail ---


def test_promtail_is_disabled_unless_logs_are_forwarded() -> None:
    assert promtail_yaml(LogForward(loki_url="http://loki"), machine()) == "disabled"


def test_promtail_sends_the_log_with_our_labels_over_the_users() -> None:
    labels = {"team": "shop", "lb": "mine", "job": "mine"}
    forward = LogForward(enabled=True, loki_url="http://loki?a=b&c: d", proxy_url="http://proxy", labels=labels)
    assert yaml.safe_load(promtail_yaml(forward, machine())) == {
        "server": {"disable": True},
        "positions": {"filename": "/tmp/positions.yaml"},
        "clients": [{"url": "http://loki?a=b&c: d", "proxy_url": "http://proxy"}],
        "scrape_configs": [
            {
                "job_name": "messages",
                "static_configs": [
                    {
                        "targets": ["localhost"],
                        "labels": {
                            "team": "shop",
                            "job": "yawol-logs",
                            "lbm": NAME,
                            "lb": "web--shop",
                            "application": "messages",
                            "__path__": "/var/log/messages",
                        },
                    }
                ],
            }
        ],
    }


# --- keepalived ---


def blocks(text: str) -> dict[str, list[str]]:
    """The lines of keepalived's file by their blocks."""
    found: dict[str, list[str]] = {}
    path: list[str] = []
    for line in (each.strip() for each in text.splitlines()):
        if line.endswith("{"):
            path.append(line[:-1].strip())
        elif line == "}":
            path.pop()
        elif line:
            found.setdefault(" / ".join(path), []).append(line)
    assert path == []
    return found


def test_keepalived_hands_over_the_virtual_address_by_the_known_priorities() -> None:
    """W29: all load balancers share the router's id; the security group separates them (`test_lb_rules.py`)."""
    assert blocks(keepalived_conf("10.1.0.5")) == {
        "global_defs": [
            "router_id envoy",
            "max_auto_priority -1",
            "vrrp_garp_master_repeat 5",
            "vrrp_garp_interval 1",
            "vrrp_garp_lower_prio_repeat 1",
            "vrrp_garp_master_refresh 300",
            "vrrp_garp_master_refresh_repeat 1",
            "vrrp_higher_prio_send_advert true",
            "enable_script_security",
        ],
        "vrrp_track_process envoy": ["process envoy", "weight 100"],
        "vrrp_script yawollethealth": [
            'script "/var/lib/yawol/check_yawollet_health.sh"',
            "interval 2",
            "timeout 10",
            "init_fail",
            "rise 1",
            "fall 3",
            "weight 10",
        ],
        "vrrp_instance ENVOY": [
            "state BACKUP",
            "interface eth0",
            "virtual_router_id 100",
            "priority 50",
            "advert_int 4",
        ],
        "vrrp_instance ENVOY / authentication": ["auth_type PASS", "auth_pass yawol"],
        "vrrp_instance ENVOY / virtual_ipaddress": ["10.1.0.5"],
        "vrrp_instance ENVOY / track_process": ["envoy"],
        "vrrp_instance ENVOY / track_script": ["yawollethealth"],
    }


class Answering(BaseHTTPRequestHandler):
    """Answers with the status of its server."""

    def do_GET(self) -> None:
        self.send_response(self.server.status)  # type: ignore[attr-defined]
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Be quiet."""


@pytest.fixture
def readiness() -> Iterator[HTTPServer]:
    server = HTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


needs_wget = pytest.mark.skipif(shutil.which("wget") is None, reason="the image's script asks by wget")


@needs_wget
@pytest.mark.parametrize(("status", "healthy"), [(200, True), (500, False), (404, False), (204, False)])
def test_the_health_script_says_yes_to_200_alone(readiness: HTTPServer, status: int, healthy: bool) -> None:
    readiness.status = status  # type: ignore[attr-defined]
    script = HEALTH_SCRIPT.replace("127.0.0.1:8080", f"127.0.0.1:{readiness.server_port}")
    ended = subprocess.run(["sh", "-c", script], capture_output=True, check=False, timeout=20)
    assert (ended.returncode == 0) is healthy


def test_the_health_script_fails_when_envoy_does_not_answer() -> None:
    script = HEALTH_SCRIPT.replace("127.0.0.1:8080", "127.0.0.1:1")
    assert subprocess.run(["sh", "-c", script], capture_output=True, check=False, timeout=20).returncode != 0


# --- access ---


def test_a_machine_has_four_objects_of_its_name() -> None:
    account, secret, role, binding = access_objects(machine())
    for each in (account, secret, role, binding):
        meta = each["metadata"]
        assert isinstance(meta, dict)
        assert (meta["name"], meta["namespace"]) == (NAME, "lbs")
        assert not {"labels", "ownerReferences"} & set(meta)
    assert [each["kind"] for each in (account, secret, role, binding)] == [
        "ServiceAccount",
        "Secret",
        "Role",
        "RoleBinding",
    ]
    assert secret["type"] == "kubernetes.io/service-account-token"
    assert secret["metadata"]["annotations"] == {"kubernetes.io/service-account.name": NAME}  # type: ignore[index]
    assert binding["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": NAME}
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": NAME, "namespace": "lbs"}]


def test_an_agent_may_write_its_own_machine_alone() -> None:
    rules = access_objects(machine())[2]["rules"]
    assert isinstance(rules, list)
    assert [(rule["apiGroups"], rule["resources"], rule.get("resourceNames"), rule["verbs"]) for rule in rules] == [
        ([""], ["events"], None, ["create", "patch"]),
        ([GROUP], ["loadbalancers"], None, ["list", "watch"]),
        ([GROUP], ["loadbalancers"], ["web--shop"], ["get"]),
        ([GROUP], ["loadbalancermachines"], None, ["list", "watch"]),
        ([GROUP], ["loadbalancermachines"], [NAME], ["get", "update", "patch"]),
        ([GROUP], ["loadbalancermachines/status"], [NAME], ["get", "update", "patch"]),
    ]


def test_the_status_names_the_objects_once() -> None:
    """W28: a machine that yawol has made names no RoleBinding and needs no write for that."""
    patch = access_status(machine())
    path = f"lbs/{NAME}"
    assert patch == {"status": {"serviceAccountName": path, "serviceAccountSecretName": path, "roleName": path}}
    after = LoadBalancerMachine.model_validate(merge(machine().model_dump(mode="json"), patch))
    assert access_status(after) == {}


def test_the_kubeconfig_leads_to_the_api_server_with_the_machines_token() -> None:
    credentials = Credentials(token="t0ken", ca=b"certificates")
    assert "t0ken" not in repr(credentials)
    text = kubeconfig("https://api:443", "lbs", credentials)
    assert yaml.safe_load(text) == {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "default-cluster",
                "cluster": {
                    "server": "https://api:443",
                    "certificate-authority-data": base64.b64encode(b"certificates").decode(),
                },
            }
        ],
        "users": [{"name": "user", "user": {"token": "t0ken"}}],
        "contexts": [
            {"name": "context", "context": {"cluster": "default-cluster", "user": "user", "namespace": "lbs"}}
        ],
        "current-context": "context",
    }
