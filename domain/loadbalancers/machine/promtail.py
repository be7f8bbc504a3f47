from __future__ import annotations

import yaml

from domain.loadbalancers.resources import LoadBalancerMachine, LogForward
from domain.schema import Document

DISABLED = "disabled"
_LOG = "/var/log/messages"
_POSITIONS = "/tmp/positions.yaml"  # noqa: S108 - on the machine, where the image keeps it


def promtail_yaml(forward: LogForward, machine: LoadBalancerMachine) -> str:
    if not forward.enabled:
        return DISABLED
    labels = {
        **(forward.labels or {}),
        "job": "yawol-logs",
        "lbm": machine.metadata.name,
        "lb": machine.spec.load_balancer_ref.name,
        "application": "messages",
        "__path__": _LOG,
    }
    client: Document = {"url": forward.loki_url}
    if forward.proxy_url:
        client["proxy_url"] = forward.proxy_url
    jobs = [{"job_name": "messages", "static_configs": [{"targets": ["localhost"], "labels": labels}]}]
    document: Document = {
        "server": {"disable": True},
        "positions": {"filename": _POSITIONS},
        "clients": [client],
        "scrape_configs": jobs,
    }
    return yaml.safe_dump(document)
