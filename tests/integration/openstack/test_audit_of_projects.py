"""`perdure audit loadbalancers` against a real project: what it finds there, and that it touches nothing."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from openstack_lab import Lab, patched
from temporalio.client import Client

from domain.loadbalancers import LOAD_BALANCER
from domain.loadbalancers.cloud.steps import DeleteFloatingIp
from domain.loadbalancers.resources import LoadBalancer
from domain.resource import CustomResource
from engine.kube import KubeApi
from starters.cli.audits import loadbalancers
from starters.cli.session import Session

pytestmark = [pytest.mark.integration, pytest.mark.openstack, pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other client works in the project: what one observation finds, the next one finds too."""
    monkeypatch.setattr(loadbalancers, "APART_SECONDS", 0.0)


async def audited(lab: Lab, about: LoadBalancer, *, thorough: bool = False) -> list[str]:
    """The audit's findings about a LoadBalancer and its cloud resources."""
    async with await KubeApi.open(lab.settings, "tests", lab.deployment.env()["KUBECONFIG"]) as kube:
        found = await loadbalancers.audit(Session(lab.settings, kube, temporal=cast(Client, None)), thorough=thorough)
    meta = about.metadata
    message = [f"{each.subject}: {each.problem}" for each in found]
    return [line for line in message if meta.name in line or meta.uid in line]


def stored(lab: Lab) -> LoadBalancer:
    """A LoadBalancer in the cluster that has everything in the cloud."""
    body = lab.balancer().model_dump(mode="json", by_alias=True, exclude_unset=True)
    made = LoadBalancer.model_validate(lab.kube.create(LOAD_BALANCER, body, body["metadata"]["namespace"]))
    settled, _ = lab.settle(made)
    store_status(lab, settled)
    return settled


def store_status(lab: Lab, obj: CustomResource) -> None:
    status = obj.model_dump(mode="json", by_alias=True, exclude_none=True)["status"]
    meta = obj.metadata
    lab.kube.patch(obj.kind_of, meta.namespace, meta.name, {"status": status}, subresource="status")


async def test_drift_and_orphans_of_a_project_are_found_with_reading_alone(lab: Lab) -> None:
    balancer = await asyncio.to_thread(stored, lab)
    lab.control.reset_ledger()
    assert await audited(lab, balancer) == []
    ledger = lab.control.ledger()
    assert (ledger.mutating(), ledger.calls() - ledger.tokens(), ledger.tokens()) == (0, 5, 1), ledger.by_route()

    lab.carry_out(DeleteFloatingIp(id=str(balancer.status.floating_id)))
    path = f"{balancer.metadata.namespace}/{balancer.metadata.name}"
    assert await audited(lab, balancer) == [f"LoadBalancer {path}: has drifted: create floating IP"]
    balancer, _ = await asyncio.to_thread(lab.settle, balancer)

    await asyncio.to_thread(lab.kube.delete, LOAD_BALANCER, balancer.metadata.namespace, balancer.metadata.name)
    assert await audited(lab, balancer) == [], "a project that no object names is not observed"
    status, uid = balancer.status, balancer.metadata.uid
    where = f"Secret {balancer.metadata.namespace}/cloud"
    assert await audited(lab, balancer, thorough=True) == [
        f"security group {status.group_id} ({path}), {where}: created for {uid}, which does not exist",
        f"port {status.port_id} ({path}), {where}: created for {uid}, which does not exist",
        f"floating IP {status.floating_id} ({status.external_ip}), {where}: has no mark of Perdure, "
        f"and is named after {path}, which does not exist",
    ]
    await asyncio.to_thread(lab.remove, balancer)


async def test_credentials_that_lead_nowhere_are_found(lab: Lab) -> None:
    body = patched(lab.balancer(), {"spec": {"infrastructure": {"authSecretRef": {"name": "nowhere"}}}})
    sent = body.model_dump(mode="json", by_alias=True, exclude_unset=True)
    await asyncio.to_thread(lab.kube.create, LOAD_BALANCER, sent, body.metadata.namespace)
    try:
        async with await KubeApi.open(lab.settings, "tests", lab.deployment.env()["KUBECONFIG"]) as kube:
            found = await loadbalancers.audit(Session(lab.settings, kube, temporal=cast(Client, None)), thorough=False)
    finally:
        await asyncio.to_thread(lab.kube.delete, LOAD_BALANCER, body.metadata.namespace, body.metadata.name)
    (line,) = (each for each in found if each.subject == f"Secret {body.metadata.namespace}/nowhere")
    assert "does not exist: create it" in line.problem
