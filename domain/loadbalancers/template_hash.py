"""The hashes in set names and for change detection: SHA-256 over Go's JSON, base32, 16 characters.

The template hash decides whether machines are replaced: if its JSON differs from yawol's by one byte, adopting an
installation replaces every machine. So it is built field by field, in the order of yawol's structs. Fields that are not
in the hash (ports, endpoints, source ranges, timeouts) reach machines through their agents. The hash contains the
*name* of the server group, so a recreated group does not create a new set.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping

from domain.loadbalancers.constants import AD_HOC_DEBUG_ANNOTATION, HASH_LENGTH
from domain.loadbalancers.go_formats import parse_bool, to_json, without_absent, without_empty
from domain.loadbalancers.resources import (
    DebugSettings,
    Flavor,
    Image,
    Infrastructure,
    LoadBalancer,
    LogForward,
    Network,
    Port,
)
from domain.schema import Document


def hash_of(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return base64.b32encode(digest).decode().lower()[:HASH_LENGTH]


def template_hash(balancer: LoadBalancer) -> str:
    """The LoadBalancer must have current field names only (`former_fields.py`)."""
    return hash_of(to_json(template_document(balancer)))


def cloud_hash(balancer: LoadBalancer) -> str:
    """The value of `status.openstackReconcileHash`."""
    spec = balancer.spec
    document: Document = {
        "adHocDebug": bool(parse_bool(balancer.metadata.annotations.get(AD_HOC_DEBUG_ANNOTATION, ""))),
        "debugSettings": _debug(spec.debug_settings),
        "ports": [_port(port) for port in spec.ports] or None,
        "serverGroupPolicy": spec.options.server_group_policy,
        "sourceRanges": list(spec.options.load_balancer_source_ranges) or None,
    }
    return hash_of(to_json(document))


def template_document(balancer: LoadBalancer) -> Document:
    spec, status, meta = balancer.spec, balancer.status, balancer.metadata
    return {
        "debugSettings": _debug(spec.debug_settings),
        "loadBalancerMachineSpec": {
            "infrastructure": _infrastructure(spec.infrastructure),
            "portID": status.port_id or "",
            "serverGroupID": status.server_group_name or "",
            "loadBalancerRef": {"name": meta.name, "namespace": meta.namespace},
        },
        "logForward": _log_forward(spec.options.log_forward),
        "serverGroupPolicy": spec.options.server_group_policy,
    }


def _debug(settings: DebugSettings) -> Document:
    return {"enabled": settings.enabled, **without_empty({"sshkeyName": settings.sshkey_name})}


def _infrastructure(infrastructure: Infrastructure) -> Document:
    networks, secret = infrastructure.additional_networks, infrastructure.auth_secret_ref
    return {
        **without_absent({"floatingNetID": infrastructure.floating_net_id}),
        **without_empty({"networkID": infrastructure.network_id}),
        "defaultNetwork": _as_declared(infrastructure.default_network),
        "additionalNetworks": None if networks is None else [{"networkID": each.network_id} for each in networks],
        "flavor": _as_declared(infrastructure.flavor),
        "image": _as_declared(infrastructure.image),
        "availabilityZone": infrastructure.availability_zone,
        "authSecretRef": without_empty({"name": secret.name, "namespace": secret.namespace}),
        "projectID": infrastructure.project_id,
    }


def _as_declared(part: Network | Flavor | Image) -> Document:
    """The fields that are set, in the order of the models, which is that of yawol's structs."""
    return part.model_dump(mode="json", exclude_none=True)


def _log_forward(forward: LogForward) -> Document:
    return {
        "enabled": forward.enabled,
        "lokiUrl": forward.loki_url,
        **without_empty({"proxyUrl": forward.proxy_url}),
        "labels": _sorted(forward.labels),
    }


def _sorted(labels: Mapping[str, str] | None) -> Document | None:
    return None if labels is None else {name: labels[name] for name in sorted(labels)}


def _port(port: Port) -> Document:
    return {
        **without_empty({"name": port.name, "protocol": port.protocol}),
        **without_absent({"appProtocol": port.app_protocol}),
        "port": port.port,
        "targetPort": 0 if port.target_port is None else port.target_port,
        **without_empty({"nodePort": port.node_port}),
    }
