"""Compares each OpenStack project with the LoadBalancers and machines that own its objects (`findings.py`).

A finding counts only if two comparisons, some time apart, both show it. An object without an owner's uid is attributed
by its name. Clusters may share a project, so a missing owner is only a hint. A comparison calls OpenStack five times
for each project.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from activities.openstack.observation import ProjectCloud, observe_project
from activities.openstack.projects import Projects
from domain.identity import Kind
from domain.loadbalancers.constants import CREDENTIALS_KEY
from domain.loadbalancers.project import ProjectReference
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine, LoadBalancerSet
from domain.reading import read_all
from engine.errors import ApiError, Denied
from engine.kube import SECRET, BlockingKube
from engine.kube.json import mapping, text
from starters.cli.audits import Finding, found_twice
from starters.cli.audits.loadbalancers.findings import Owners, Snapshot, findings, is_a_machines
from starters.cli.output import utc_now, warn
from starters.cli.session import Session

# Seconds between the two comparisons: longer than a step in the cloud, and than the lag of its lists.
APART_SECONDS = 5.0

ROLE = Kind(name="Role", group="rbac.authorization.k8s.io", version="v1", plural="roles", area="")


async def audit(session: Session, *, thorough: bool) -> list[Finding]:
    kube = BlockingKube(session.kube, asyncio.get_running_loop())
    observing = session.settings.model_copy(update={"mode": "observe"})
    projects = Projects(kube, observing)

    async def look() -> Iterable[Finding]:
        return findings(await asyncio.to_thread(observe, kube, projects, thorough), utc_now())

    try:
        return await found_twice(look, APART_SECONDS)
    finally:
        projects.close()


def observe(kube: BlockingKube, projects: Projects, thorough: bool) -> Snapshot:
    """Read the clouds' lists, and read the custom resources both before and after them."""
    before = _owners(kube)
    references = before.references() | (_every_secret(kube) if thorough else set())
    clouds = {each: _cloud(projects, each) for each in sorted(references, key=lambda each: each.model_dump_json())}
    # An owner that is created or deleted meanwhile is missing in only one of the two readings.
    return Snapshot(owners=_owners(kube), before=before, clouds=clouds)


def _owners(kube: BlockingKube) -> Owners:
    balancers, bad_balancers = read_all(LoadBalancer, kube.list(LoadBalancer.kind_of).items)
    sets, bad_sets = read_all(LoadBalancerSet, kube.list(LoadBalancerSet.kind_of).items)
    machines, bad_machines = read_all(LoadBalancerMachine, kube.list(LoadBalancerMachine.kind_of).items)
    namespaces = {each.metadata.namespace for each in (*balancers, *sets, *machines)}
    rights = frozenset(right for namespace in sorted(namespaces) for right in _rights(kube, namespace))
    return Owners(balancers, sets, machines, (*bad_balancers, *bad_sets, *bad_machines), rights)


def _rights(kube: BlockingKube, namespace: str) -> Iterator[tuple[str, str]]:
    try:
        roles = kube.list(ROLE, namespace).items
    except Denied as error:
        warn(f"skipped: Roles of machines in {namespace}: {error.message}")
        return
    yield from ((namespace, text(role, "metadata", "name")) for role in roles if is_a_machines(role))


def _every_secret(kube: BlockingKube) -> set[ProjectReference]:
    try:
        secrets = kube.list(SECRET).items
    except Denied as error:
        warn(f"only the projects of LoadBalancers are audited: {error.message}")
        return set()
    return {
        ProjectReference(namespace=text(each, "metadata", "namespace"), secret=text(each, "metadata", "name"))
        for each in secrets
        if CREDENTIALS_KEY in mapping(each, "data")
    }


def _cloud(projects: Projects, reference: ProjectReference) -> ProjectCloud | ApiError:
    try:
        return observe_project(projects.project(reference))
    except ApiError as error:
        return error
