"""Compares custom resources with cloud objects, one to one. The clouds are read directly, not through Perdure.

An object's name or mark in the cloud identifies the object's owner. An object that no custom resource records is
reported as leaked. Several objects of one owner are reported as doubled.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from domain.accounts import ACCOUNT
from domain.accounts.constants import ADMIN_USER_PREFIX, OPERATOR_NAMESPACE
from domain.accounts.resources import Account
from domain.built_in_kinds import CONFIG_MAP, SECRET
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE
from domain.claims.domain_names import DomainNames
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_MACHINE
from engine.errors import Absent
from engine.kube import KubeApi
from engine.kube.json import JsonObject, mapping, sequence, text
from localcloud.machines.contract import MachineState
from localcloud.machines.control import MachineHost
from localcloud.openstack.project import listed, project_session

if TYPE_CHECKING:
    from localcloud.aws.contract import World
    from localcloud.aws.control import Emulator
    from localcloud.deployment import Deployment

Recorded = Mapping[str, str]
"""The id that each owner's custom resource records, by owner; empty if it records none yet."""
Held = Iterable[tuple[str, str]]
"""The objects that a cloud holds: owner and id of each."""


@dataclass(frozen=True)
class Comparison:
    thing: str
    owner: str
    recorded: str
    held: tuple[str, ...]

    @property
    def problem(self) -> str:
        if len(self.held) > 1:
            return "doubled"
        if not self.held:
            return "missing in the cloud"
        if not self.recorded:
            return "leaked: no custom resource records it"
        return "" if self.held == (self.recorded,) else "another one than recorded"

    def __str__(self) -> str:
        return (
            f"{self.thing} of {self.owner}: recorded {self.recorded or 'none'}, held {', '.join(self.held) or 'none'}"
        )


def compare(thing: str, recorded: Recorded, held: Held) -> list[Comparison]:
    ids: dict[str, list[str]] = {owner: [] for owner in recorded}
    for owner, id_ in held:
        ids.setdefault(owner, []).append(id_)
    lines = (Comparison(thing, owner, recorded.get(owner, ""), tuple(sorted(ids[owner]))) for owner in sorted(ids))
    return [line for line in lines if line.recorded or line.held]


async def audit(kube: KubeApi, deployment: Deployment, emulator: Emulator) -> list[Comparison]:
    accounts = [Account.model_validate(obj) for obj in (await kube.list(ACCOUNT)).items]
    ours = [each for each in accounts if not each.spec.byoc and not each.spec.manual_sts_mode]
    return [
        *_aws(ours, await _keys_in_secrets(kube, ours), await asyncio.to_thread(emulator.world)),
        *_claims(
            DomainNames(domain=kube.operator_domain),
            (await kube.list(RESOURCE_CLAIM)).items,
            (await kube.list(RESOURCE_HANDLE)).items,
            (await kube.list(CONFIG_MAP)).items,
        ),
        *await asyncio.to_thread(
            _openstack,
            deployment,
            (await kube.list(LOAD_BALANCER)).items,
            (await kube.list(LOAD_BALANCER_MACHINE)).items,
        ),
    ]


# AWS.


async def _keys_in_secrets(kube: KubeApi, accounts: Iterable[Account]) -> dict[str, str]:
    found = {}
    for account in accounts:
        name = account.metadata.name
        try:
            secret = await kube.get(SECRET, OPERATOR_NAMESPACE, f"{name}-secret")
        except Absent:
            secret = {}
        found[name] = base64.b64decode(text(secret, "data", "aws_access_key_id")).decode()
    return found


def _aws(accounts: list[Account], keys: dict[str, str], world: World) -> list[Comparison]:
    members = {member.id: member.name for member in world.members() if member.state == "ACTIVE"}
    unused = {each.spec.aws_account_id for each in accounts if not each.spec.claim_link}
    return [
        *compare(
            "AWS account",
            {each.metadata.name: each.spec.aws_account_id for each in accounts},
            ((name, id_) for id_, name in members.items()),
        ),
        *compare(
            "access key",
            keys,
            (
                (members[key.account], key.id)
                for key in world.keys
                if key.account in members and key.user.startswith(ADMIN_USER_PREFIX)
            ),
        ),
        *support_cases(
            accounts, [(name, case.id) for id_, name in members.items() for case in world.cases if id_ in case.subject]
        ),
        # Instances for initializing regions are terminated again. A claimed account's instances belong to its tenant.
        *compare(
            "EC2 instance",
            {},
            ((members[each.account], each.id) for each in world.instances if each.account in unused & set(members)),
        ),
    ]


def support_cases(accounts: Iterable[Account], held: Held) -> list[Comparison]:
    """Compare support cases, except those of reused accounts, whose record a release has cleared."""
    recorded = {each.metadata.name: each.status.support_case_id for each in accounts}
    cleared = {each.metadata.name for each in accounts if each.status.reused and not each.status.support_case_id}
    return compare("support case", recorded, [(owner, id_) for owner, id_ in held if owner not in cleared])


# Resource claims, whose cloud is Kubernetes.


def _claims(
    names: DomainNames, claims: list[JsonObject], handles: list[JsonObject], things: list[JsonObject]
) -> list[Comparison]:
    holders = [(each, mapping(each, "spec", "resourceClaim")) for each in handles]
    return [
        *compare(
            "ResourceHandle",
            {_path(each): text(each, "status", "resourceHandle", "name") for each in claims},
            ((f"{text(of, 'namespace')}/{text(of, 'name')}", _name(each)) for each, of in holders if of),
        ),
        *compare(
            "claimed resource",
            {
                f"{_name(handle)} [{index}]": text(entry, "reference", "name")
                for handle in handles
                for index, entry in enumerate(sequence(handle, "status", "resources"))
            },
            ((marked, _name(each)) for each in things if (marked := _marked_for(names, each))),
        ),
    ]


def _marked_for(names: DomainNames, thing: JsonObject) -> str:
    marks = mapping(thing, "metadata", "annotations")
    handle = text(marks, names.resource_handle_name_annotation)
    return f"{handle} [{text(marks, names.resource_index_annotation)}]" if handle else ""


# OpenStack.


def _openstack(deployment: Deployment, balancers: list[JsonObject], machines: list[JsonObject]) -> list[Comparison]:
    session = project_session(deployment)
    floating = listed(session, "network", "/v2.0/floatingips", "floatingips")
    groups = listed(session, "network", "/v2.0/security-groups", "security_groups")
    ports = listed(session, "network", "/v2.0/ports", "ports")
    servers = listed(session, "compute", "/servers/detail", "servers")
    with MachineHost.of(deployment) as host:
        processes = [each for each in host.view().machines if each.state is MachineState.UP]
    of_servers = {_name(each): text(each, "status", "serverID") for each in machines}
    return [
        *compare("floating IP", _status(balancers, "floatingID"), ((e["description"], e["id"]) for e in floating)),
        *compare(
            "security group",
            _status(balancers, "securityGroupID"),
            ((each["name"], each["id"]) for each in groups if each["name"] != "default"),
        ),
        *compare(
            "port",
            {**_status(balancers, "portID"), **_status(machines, "defaultPortID")},
            # Ports of routers and DHCP belong to the network.
            ((each["name"], each["id"]) for each in ports if not each["device_owner"].startswith("network:")),
        ),
        *compare("server", of_servers, ((each["name"], each["id"]) for each in servers)),
        *compare("running machine", of_servers, ((each.name, each.server_id) for each in processes)),
    ]


def _status(objects: Iterable[JsonObject], field: str) -> dict[str, str]:
    return {_path(each): text(each, "status", field) for each in objects}


def _path(obj: JsonObject) -> str:
    return f"{text(obj, 'metadata', 'namespace')}/{_name(obj)}"


def _name(obj: JsonObject) -> str:
    return text(obj, "metadata", "name")
