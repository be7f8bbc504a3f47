"""A machine's user data: the cloud-config for its image, with files and services.

cloud-init reads it once, so later changes reach only new machines. It contains a token, so it is generated when the
server is created and never stored.
"""

from __future__ import annotations

import base64
from datetime import timedelta

import yaml

from domain.loadbalancers.machine.keepalived import HEALTH_SCRIPT, HEALTH_SCRIPT_PATH, keepalived_conf
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine, LogForward
from domain.model import Model
from domain.schema import Document

KUBECONFIG_PATH = "/etc/yawol/kubeconfig"
ENVIRONMENT_PATH = "/etc/yawol/env.conf"
PROBE_ADDRESS = "127.0.0.1:8080"
_DEFAULT_NTP_POOL = "pool.ntp.org"
_LOG_FILE = "/var/log/messages"
_LOG_POSITIONS = "/tmp/positions.yaml"  # noqa: S108 - on the machine, where the image keeps it


class MachineSettings(Model):
    ntp_pools: tuple[str, ...] = ()
    ntp_servers: tuple[str, ...] = ()  # without servers and pools, pool.ntp.org is used
    requeue_time: timedelta | None = None  # the agents' report interval; their own default if None


def user_data(
    machine: LoadBalancerMachine,
    balancer: LoadBalancer,
    *,
    virtual_address: str,
    kubeconfig: str,
    settings: MachineSettings,
) -> str:
    """The user data as text; Nova expects base64."""
    forward = balancer.spec.options.log_forward
    files = [
        _file("/etc/chrony/chrony.conf", _chrony(settings)),
        _file(KUBECONFIG_PATH, kubeconfig, owner="yawol:yawol", mode="0600"),
        _file("/etc/keepalived/keepalived.conf", keepalived_conf(virtual_address)),
        _file(HEALTH_SCRIPT_PATH, HEALTH_SCRIPT, mode="0755"),
        _file("/etc/promtail/promtail.yaml", promtail_yaml(forward, machine), owner="promtail"),
        {"path": ENVIRONMENT_PATH, "content": _environment(machine, virtual_address, settings)},
    ]
    commands = [
        ["rc-service", "chronyd", "restart"],
        *_switched("promtail", on=forward.enabled),
        *_switched("sshd", on=balancer.spec.debug_settings.enabled),
        *(["rc-service", service, "restart"] for service in ("keepalived", "envoy", "yawollet")),
    ]
    document: Document = {"write_files": files, "runcmd": commands}
    # The empty first line is yawol's; cloud-init accepts it.
    return "\n#cloud-config\n" + yaml.safe_dump(document, sort_keys=False, width=10_000)


def _file(path: str, content: str, *, owner: str = "root:root", mode: str = "0644") -> Document:
    encoded = base64.b64encode(content.encode()).decode()
    return {"path": path, "owner": owner, "permissions": mode, "encoding": "b64", "content": encoded}


def _switched(service: str, *, on: bool) -> list[list[str]]:
    return [
        ["rc-service", service, "start" if on else "stop"],
        ["rc-update", "add" if on else "del", service, "default"],
    ]


def _environment(machine: LoadBalancerMachine, virtual_address: str, settings: MachineSettings) -> str:
    arguments = [
        f"--namespace={machine.metadata.namespace}",
        f"--loadbalancer-name={machine.spec.load_balancer_ref.name}",
        f"--loadbalancer-machine-name={machine.metadata.name}",
        f"--listen-address={virtual_address}",
        f"--health-probe-bind-address={PROBE_ADDRESS}",
        f"--kubeconfig {KUBECONFIG_PATH}",
    ]
    if settings.requeue_time is not None:
        arguments.append(f"--requeue-time={int(settings.requeue_time.total_seconds())}")
    return f'YAWOLLET_ARGS="{" ".join(arguments)} "'


def _chrony(settings: MachineSettings) -> str:
    pools = settings.ntp_pools or (() if settings.ntp_servers else (_DEFAULT_NTP_POOL,))
    lines = [
        *(f"pool {pool} iburst" for pool in pools),
        *(f"server {server} iburst" for server in settings.ntp_servers),
        "driftfile /var/lib/chrony/chrony.drift",
        "rtcsync",
        "cmdport 0",
        "maxupdateskew 100.0",
        "makestep 1 3",
    ]
    return "\n".join(lines) + "\n"


def promtail_yaml(forward: LogForward, machine: LoadBalancerMachine) -> str:
    if not forward.enabled:
        return "disabled"
    labels = {
        **(forward.labels or {}),
        "job": "yawol-logs",
        "lbm": machine.metadata.name,
        "lb": machine.spec.load_balancer_ref.name,
        "application": "messages",
        "__path__": _LOG_FILE,
    }
    client: Document = {"url": forward.loki_url}
    if forward.proxy_url:
        client["proxy_url"] = forward.proxy_url
    jobs = [{"job_name": "messages", "static_configs": [{"targets": ["localhost"], "labels": labels}]}]
    document: Document = {
        "server": {"disable": True},
        "positions": {"filename": _LOG_POSITIONS},
        "clients": [client],
        "scrape_configs": jobs,
    }
    return yaml.safe_dump(document)
