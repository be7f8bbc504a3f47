"""Mismatches between custom resources and OpenStack projects, in one snapshot: pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from activities.openstack.observation import ProjectCloud
from domain.control_annotations import paused
from domain.identity import Kind
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_MACHINE
from domain.loadbalancers.cloud.drift_sweep import difference_of_balancer, difference_of_machine, orphans, owned_by
from domain.loadbalancers.cloud.floating_ip import floating_ips_of
from domain.loadbalancers.cloud.load_balancer import ports_of, security_groups_of
from domain.loadbalancers.cloud.machine import machine_ports, machine_servers
from domain.loadbalancers.cloud.objects import CloudPort, FloatingIp, SecurityGroup, Server
from domain.loadbalancers.cloud.ownership import Selection, marked_for
from domain.loadbalancers.former_fields import migrated
from domain.loadbalancers.names import cloud_name
from domain.loadbalancers.project import ProjectReference
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine, LoadBalancerSet, owner_name
from domain.reading import Malformed
from domain.resource import CustomResource
from engine.errors import ApiError
from engine.kube.json import JsonObject, sequence, text
from starters.cli.audits import Finding

AREA = "loadbalancers"

_LOOK = "`perdure why` shows what it does; `perdure wake` reconciles it"
_ORPHAN = "delete it, unless its owner is in another cluster that uses this project"
_FOREIGN = "unless it belongs to another cluster or to a person"


@dataclass(frozen=True)
class Owners:
    """The area's objects. `rights` has the namespace and name of each machine for which a Role exists."""

    balancers: tuple[LoadBalancer, ...] = ()
    sets: tuple[LoadBalancerSet, ...] = ()
    machines: tuple[LoadBalancerMachine, ...] = ()
    malformed: tuple[Malformed, ...] = ()
    rights: frozenset[tuple[str, str]] = frozenset()

    @property
    def objects(self) -> tuple[LoadBalancer | LoadBalancerMachine, ...]:
        return (*self.balancers, *self.machines)

    def references(self) -> set[ProjectReference]:
        return {ProjectReference.of(each) for each in self.objects}

    def owned(self) -> set[str]:
        return {*owned_by(self.objects), *(each.key.uid for each in self.malformed)}

    def names(self) -> set[str]:
        unreadable = (f"{each.key.namespace}/{each.key.name}" for each in self.malformed)
        return {*(cloud_name(each.metadata) for each in self.objects), *unreadable}


@dataclass(frozen=True)
class Snapshot:
    """What was read: the clouds, the owners `before` the clouds were read, and the `owners` afterwards."""

    owners: Owners = Owners()
    before: Owners = Owners()
    clouds: Mapping[ProjectReference, ProjectCloud | ApiError] | None = None

    @property
    def read(self) -> list[tuple[ProjectReference, ProjectCloud]]:
        clouds = (self.clouds or {}).items()
        return [(reference, cloud) for reference, cloud in clouds if isinstance(cloud, ProjectCloud)]


def findings(found: Snapshot, now: datetime) -> Iterator[Finding]:
    """All findings without duplicates, which two Secrets of one project would cause."""
    found_below = (
        *unreadable(found),
        *without_project(found),
        *marked_without_owner(found),
        *named_without_owner(found),
        *differing(found, now),
        *doubled(found),
        *without_owner(found.owners),
    )
    yield from dict.fromkeys(found_below)


# --- projects and objects that cannot be read ---


def unreadable(found: Snapshot) -> Iterator[Finding]:
    for each in found.owners.malformed:
        key = each.key
        yield _finding(
            f"{key.kind} {key.namespace}/{key.name}", f"cannot be read: {each.problem}", "correct the object"
        )


def without_project(found: Snapshot) -> Iterator[Finding]:
    for reference, cloud in (found.clouds or {}).items():
        if isinstance(cloud, ApiError):
            users = sum(ProjectReference.of(each) == reference for each in found.owners.objects)
            problem = f"its project, used by {users} objects, cannot be read: {cloud.message}"
            yield _finding(reference.where, problem, "correct the credentials; the project was not audited")


# --- missing owners ---


def marked_without_owner(found: Snapshot) -> Iterator[Finding]:
    owned = found.owners.owned() | found.before.owned()
    for reference, cloud in found.read:
        for orphan in orphans(cloud.security_groups, cloud.ports, cloud.servers, owned):
            problem = f"created for {orphan.owner}, which does not exist"
            yield _finding(f"{orphan.kind} {orphan.id} ({orphan.name}), {reference.where}", problem, _ORPHAN)


def named_without_owner(found: Snapshot) -> Iterator[Finding]:
    taken = found.owners.names() | found.before.names()
    ours = {name.partition("/")[0] for name in taken}
    for reference, cloud in found.read:
        namespaces = ours | {reference.namespace}
        for kind, id_, name in (*_named(cloud), *_servers_named(cloud, found.owners)):
            namespace, _, owner = name.partition("/")
            if owner and namespace in namespaces and name not in taken:
                problem = f"has no mark of Perdure, and is named after {name}, which does not exist"
                yield _finding(f"{kind} {id_}, {reference.where}", problem, f"delete it, {_FOREIGN}")


def _named(cloud: ProjectCloud) -> Iterator[tuple[str, str, str]]:
    for kind, marked in (("security group", cloud.security_groups), ("port", cloud.ports)):
        yield from ((kind, each.id, each.name) for each in marked if not marked_for(each.description))
    yield from (
        ("floating IP", f"{each.id} ({each.address})", each.description)
        for each in cloud.floating_ips
        if "/" in each.description and " " not in each.description
    )
    yield from (("server group", each.id, each.name) for each in cloud.server_groups)


def _servers_named(cloud: ProjectCloud, owners: Owners) -> Iterator[tuple[str, str, str]]:
    for balancer in owners.balancers:
        meta = balancer.metadata
        named = re.compile(rf"{re.escape(meta.name)}-[a-z2-7]{{16}}-[0-9a-f]{{5}}")
        servers = (each for each in cloud.servers if not each.uid and named.fullmatch(each.name))
        yield from (("server", each.id, f"{meta.namespace}/{each.name}") for each in servers)


def without_owner(owners: Owners) -> Iterator[Finding]:
    balancers = {cloud_name(each.metadata) for each in owners.balancers} | _unread(owners, LOAD_BALANCER)
    machines = {cloud_name(each.metadata) for each in owners.machines} | _unread(owners, LOAD_BALANCER_MACHINE)
    belonging: list[tuple[CustomResource, str]] = [
        *((each, _owner(each)) for each in owners.sets),
        *((each, _served(each)) for each in owners.machines),
    ]
    for each, balancer in belonging:
        if balancer and balancer not in balancers and not each.metadata.deleting:
            problem = f"belongs to LoadBalancer {balancer}, which does not exist"
            yield _finding(_subject(each), problem, "delete it: no client reaches it")
    for namespace, machine in sorted(owners.rights):
        if f"{namespace}/{machine}" not in machines:
            problem = "gives rights to the agent of a machine that does not exist"
            advice = "delete it, and the RoleBinding and ServiceAccount of its name"
            yield _finding(f"Role {namespace}/{machine}", problem, advice)


def _unread(owners: Owners, kind: Kind) -> set[str]:
    return {f"{each.key.namespace}/{each.key.name}" for each in owners.malformed if each.key.kind == kind.name}


def _owner(machine_set: LoadBalancerSet) -> str:
    meta = machine_set.metadata
    name = owner_name(meta, LOAD_BALANCER)
    return f"{meta.namespace}/{name}" if name else ""


def _served(machine: LoadBalancerMachine) -> str:
    reference = machine.spec.load_balancer_ref
    return f"{reference.namespace or machine.metadata.namespace}/{reference.name}" if reference.name else ""


# --- an owner's objects ---


def differing(found: Snapshot, now: datetime) -> Iterator[Finding]:
    clouds = dict(found.read)
    balancers = {cloud_name(each.metadata): each for each in found.owners.balancers}
    for balancer in found.owners.balancers:
        cloud = clouds.get(ProjectReference.of(balancer))
        if cloud is not None:
            yield from _differs(balancer, difference_of_balancer(balancer, cloud.of_load_balancer(balancer), now))
    for machine in found.owners.machines:
        cloud, served = clouds.get(ProjectReference.of(machine)), balancers.get(_served(machine))
        if cloud is not None and served is not None:
            yield from _differs(machine, difference_of_machine(machine, cloud.of_machine(machine), migrated(served)))


def _differs(obj: CustomResource, difference: str) -> Iterator[Finding]:
    if difference:
        advice = "it is paused: `perdure resume` lets Perdure correct it" if paused(obj.metadata) else _LOOK
        yield _finding(_subject(obj), f"has drifted: {difference}", advice)


def doubled(found: Snapshot) -> Iterator[Finding]:
    clouds = dict(found.read)
    for each in found.owners.objects:
        cloud = clouds.get(ProjectReference.of(each))
        if cloud is None or each.metadata.deleting:
            continue
        selections = _of_balancer(each, cloud) if isinstance(each, LoadBalancer) else _of_machine(each, cloud)
        for kind, several, strangers in selections:
            if several:
                problem = f"has {len(several)} {kind}s: {', '.join(several)}"
                yield _finding(_subject(each), problem, "keep the one that its status names; delete the others")
            for stranger in strangers:
                problem = f"{kind} {stranger} has its name, but does not belong to it"
                yield _finding(_subject(each), problem, f"delete this {kind}, {_FOREIGN}")


_Selected = tuple[str, tuple[str, ...], tuple[str, ...]]


def _of_balancer(written: LoadBalancer, cloud: ProjectCloud) -> Iterator[_Selected]:
    balancer = migrated(written)
    candidates = cloud.of_load_balancer(balancer)
    ports = ports_of(balancer, candidates)
    yield _ids("security group", security_groups_of(balancer, candidates))
    yield _ids("port", ports)
    if not balancer.spec.existing_floating_ip:
        yield _ids("floating IP", floating_ips_of(balancer, candidates, ports.selected))


def _of_machine(machine: LoadBalancerMachine, cloud: ProjectCloud) -> Iterator[_Selected]:
    candidates = cloud.of_machine(machine)
    yield _ids("port", machine_ports(machine, candidates))
    yield _ids("server", machine_servers(machine, candidates))


def _ids(
    kind: str, found: Selection[SecurityGroup] | Selection[CloudPort] | Selection[FloatingIp] | Selection[Server]
) -> _Selected:
    """Returns `kind`, the ids of duplicates (including the selected object), and the ids of foreign objects. Marked
    duplicates are left out, because Perdure itself deletes them.
    """
    several = (found.selected, *found.spare) if found.selected and found.spare else ()
    return kind, tuple(each.id for each in several), tuple(each.id for each in found.strangers)


def is_a_machines(role: JsonObject) -> bool:
    name = text(role, "metadata", "name")
    named = {
        str(each)
        for rule in sequence(role, "rules")
        if LOAD_BALANCER_MACHINE.plural in sequence(rule, "resources")
        for each in sequence(rule, "resourceNames")
    }
    return named == {name}


def _subject(obj: CustomResource) -> str:
    return f"{obj.kind_of.name} {cloud_name(obj.metadata)}"


def _finding(subject: str, problem: str, advice: str) -> Finding:
    return Finding(area=AREA, subject=subject, problem=problem, advice=advice)
