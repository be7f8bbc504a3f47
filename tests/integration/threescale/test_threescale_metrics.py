"""What a worker counts of 3scale: calls by their answers, refusals, how passes ended, what a sweep has found."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from prometheus_client import REGISTRY
from temporalio.testing import ActivityEnvironment
from threescale_lab import Shop
from threescale_passes_lab import Passes
from threescale_process import Client

from activities.threescale.drift_sweep import SweepActivities
from domain.threescale import BACKEND, THE_TENANTS
from domain.threescale.observed import Memory
from domain.threescale.passes import SweepTenants
from localcloud.threescale.control import ThreescaleControl

pytestmark = pytest.mark.integration


class Growth:
    """How much numbers have grown since, over all labels that are not named."""

    def __init__(self) -> None:
        self._before = self._samples()

    def of(self, name: str, **labels: str) -> float:
        """Of one number."""
        wanted = {(name, *each) for each in labels.items()}
        return sum(
            value - self._before.get(key, 0.0)
            for key, value in self._samples().items()
            if key[0] == name and wanted <= {(name, *label) for label in key[1]}
        )

    @staticmethod
    def _samples() -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in REGISTRY.collect()
            for sample in family.samples
        }


async def test_calls_refusals_and_passes_are_counted(
    bare_shop: Shop, passes: Passes, control: ThreescaleControl
) -> None:
    control.reset_ledger()
    control.fault("POST", "/backend_apis", kind="refuse", status=403, count=1)
    growth = Growth()
    await bare_shop.backend()
    (key,) = await passes.keys(bare_shop)
    await passes.look(key)

    assert growth.of("perdure_threescale_calls_total") == control.ledger().calls()
    assert growth.of("perdure_threescale_calls_total", method="POST", status="403") == 1
    assert growth.of("perdure_threescale_refusals_total", kind="Backend", type="Denied") == 1
    assert growth.of("controller_runtime_reconcile_total", controller="backend", result="error") == 1
    assert growth.of("controller_runtime_reconcile_errors_total", controller="backend") == 1

    await passes.settled(bare_shop)
    assert growth.of("perdure_threescale_calls_total", method="POST", status="201") == 1
    assert growth.of("controller_runtime_reconcile_total", controller="backend", result="success") >= 1
    assert growth.of("controller_runtime_reconcile_errors_total", controller="backend") == 1
    assert growth.of("controller_runtime_active_workers") == 0


async def test_a_sweep_leaves_what_differed_what_has_no_object_and_when_it_was(
    bare_shop: Shop, passes: Passes, tenant: Client
) -> None:
    await bare_shop.backend()
    await passes.settled(bare_shop)
    made = (await bare_shop.get(BACKEND, "stock") or {})["status"]["backendId"]
    tenant.put(f"backend_apis/{made}", name="Somebody's own")
    ours = {"managed_by": "operator"}
    tenant.post("backend_apis", name="lost", private_endpoint="https://x.example.com", annotations=ours)
    began = datetime.now(UTC)
    look = SweepTenants(key=THE_TENANTS, memory=Memory(next_sweep=datetime(2020, 1, 1, tzinfo=UTC)))
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, started_time=began)
    await environment.run(SweepActivities(passes.activities.context).sweep_tenants, look)

    def of(name: str) -> float | None:
        return REGISTRY.get_sample_value(f"perdure_threescale_{name}", {"tenant": tenant.url})

    assert (of("drift"), of("without_owner")) == (1, 1)
    assert (of("swept_timestamp_seconds") or 0) >= began.timestamp() - 1
