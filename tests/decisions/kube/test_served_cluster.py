"""Only processes of load balancers read the kubeconfig of the cluster whose Services are served."""

from __future__ import annotations

from typing import cast

import pytest
from kubernetes.aio.config import ConfigException

from engine.kube import KubeApi
from engine.kube.clusters import served_cluster
from engine.settings import Settings

OWN = cast("KubeApi", object())
ELSEWHERE = "/nowhere/kubeconfig"


@pytest.mark.parametrize(
    ("of_settings", "of_process"), [((), ("claims",)), (("accounts",), ()), (("loadbalancers",), ("accounts",))]
)
async def test_a_process_of_other_areas_needs_no_kubeconfig(
    of_settings: tuple[str, ...], of_process: tuple[str, ...]
) -> None:
    settings = Settings(loadbalancers_target_kubeconfig=ELSEWHERE, areas=of_settings)
    async with served_cluster(settings, OWN, "tests", of_process) as served:
        assert served is OWN


@pytest.mark.parametrize("areas", [(), ("claims", "loadbalancers")])
async def test_a_process_of_load_balancers_reports_a_missing_kubeconfig(areas: tuple[str, ...]) -> None:
    with pytest.raises(ConfigException):
        async with served_cluster(Settings(loadbalancers_target_kubeconfig=ELSEWHERE), OWN, "tests", areas):
            pass
