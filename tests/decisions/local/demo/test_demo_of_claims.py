"""What the demo of resource claims reads off the objects."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from memory_kube import MemoryKube

from domain.claims import RESOURCE_CLAIM, RESOURCE_PROVIDER
from domain.operator_domain import DEFAULT
from engine.kube.api import KubeApi
from localcloud.demo.claims import SCENARIO, failure, look
from localcloud.demo.stage import Stage, Waiting
from localcloud.deployment import Deployment

EXAMPLES = Path(__file__).parents[4] / "examples" / "claims"

END = "2026-11-21T12:00:08Z"


def obj(kind: str, spec: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": "it"}, "spec": spec or {}, "status": status}


def pool(ready: int) -> dict[str, Any]:
    return obj("ResourcePool", {"minAvailable": 3}, resourceHandleCount={"available": 3, "ready": ready})


HELD = {"resourceHandle": {"name": "guid-abcde"}}


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (pool(1), Waiting("1 of 3 ready")),
        (pool(3), Waiting("Full")),
        (obj("ResourcePool", {"minAvailable": 3}), Waiting("0 of 3 ready")),
        (obj("ResourceClaim"), Waiting()),
        (obj("ResourceClaim", approval={"state": "pending"}), Waiting("ApprovalPending", ("approval",))),
        (obj("ResourceClaim", approval={"state": "approved"}), Waiting("Approved")),
        (obj("ResourceClaim", **HELD, approval={"state": "approved"}), Waiting("Unready")),
        (obj("ResourceClaim", **HELD), Waiting("Unready")),
        (obj("ResourceClaim", **HELD, ready=True), Waiting("Ready")),
        (
            {"kind": "ResourceClaim", "metadata": {"name": "it", "deletionTimestamp": END}, "status": {"ready": True}},
            Waiting(),
        ),
        (
            obj("ResourceClaim", **HELD, ready=True, lifespan={"end": END}),
            Waiting("Ready", ("its expiry",), datetime(2026, 11, 21, 12, 0, 8, tzinfo=UTC)),
        ),
        (
            obj("ResourceHandle", resources=[{"name": "a"}, {"waitingFor": "Linked ResourceProvider"}]),
            Waiting("Unready", ("Linked ResourceProvider",)),
        ),
        (
            obj("ResourceHandle", {"lifespan": {"end": END}}, ready=True),
            Waiting("Ready", ("its expiry",), datetime(2026, 11, 21, 12, 0, 8, tzinfo=UTC)),
        ),
    ],
)
def test_a_row_shows_how_far_the_object_is(shown: dict[str, Any], expected: Waiting) -> None:
    assert look(shown) == expected


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        (obj("ResourceClaim", provider={"name": "lab"}), ""),
        (
            obj("ResourceClaim", provider={"validationErrors": ["Parameter size is required."]}),
            "ResourceClaim it: Parameter size is required.",
        ),
        (
            obj("ResourceClaim", resources=[{}, {"validationError": "Validation check failed: ours"}]),
            "ResourceClaim it: Validation check failed: ours",
        ),
        (
            obj("ResourceHandle", conditions=[{"type": "Stalled", "status": "True", "reason": "No", "message": "so"}]),
            "ResourceHandle it: No: so",
        ),
        (obj("ResourceHandle", conditions=[{"type": "Stalled", "status": "False", "reason": "No"}]), ""),
    ],
)
def test_an_error_for_a_person_ends_the_demo(shown: dict[str, Any], reason: str) -> None:
    assert failure(shown) == reason


@pytest.mark.parametrize("domain", [DEFAULT, "poolboy.dev.local"])
async def test_the_examples_are_applied_under_the_configured_domain(domain: str, tmp_path: Path) -> None:
    kube = MemoryKube()
    kube.operator_domain = domain
    stage = Stage(
        kube=cast(KubeApi, kube),
        temporal=cast(Any, None),
        deployment=Deployment(tmp_path),
        emulator=None,
        manifests=EXAMPLES,
        spectator=cast(Any, None),
        scenario=SCENARIO,
    )
    for file in ("providers.yaml", "claim-lab.yaml", "claim-notebooks.yaml"):
        await stage.apply(file)
    made = [*(await kube.list(RESOURCE_PROVIDER)).items, *(await kube.list(RESOURCE_CLAIM)).items]
    assert len(made) > 4
    assert {each["apiVersion"] for each in made} == {f"{domain}/v1"}
    assert domain == DEFAULT or DEFAULT not in str(made)
