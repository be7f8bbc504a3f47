"""The simulator outlives its process, and is part of a deployment."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import httpx
import pytest
from threescale_process import Client, ThreescaleProcess, client_of

from localcloud import services
from localcloud.deployment import Deployment
from localcloud.state import Cloud
from localcloud.threescale.contract import DEFAULT_MASTER_TOKEN, DEFAULT_TOKEN
from localcloud.threescale.control import ThreescaleControl

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_everything_answered_is_there_after_a_restart(own_process: ThreescaleProcess, number: signal.Signals) -> None:
    with ThreescaleControl(own_process.start().url) as control:
        tenant = control.add_tenant("Alpha")
        control.config(page_size=2)
        control.fault("DELETE", status=500, count=3)
        before = control.world("alpha")
    client = Client(tenant.url, tenant.token)
    service = client.used_service()
    client.post(f"services/{service['id']}/proxy/deploy")
    client.call("DELETE", f"services/{service['id']}")
    client.close()
    url = own_process.url
    own_process.end(number)
    own_process.start()

    with ThreescaleControl(own_process.url) as control:
        assert own_process.url == url
        assert control.tenant("alpha") == tenant
        assert control.config().page_size == 2
        assert [(fault.count, fault.hits) for fault in control.faults()] == [(2, 1)]
        assert control.ledger().calls() == 0
        assert control.world("alpha").count("services") == before.count("services") + 1
    again = Client(tenant.url, tenant.token)
    assert again.get(f"services/{service['id']}/proxy/configs/sandbox/latest")["proxy_config"]["version"] == 1
    again.close()


def test_an_id_is_never_used_twice(own_process: ThreescaleProcess) -> None:
    with ThreescaleControl(own_process.start().url) as control:
        client = client_of(control)
    first = client.service()
    client.delete(f"services/{first['id']}")
    client.list("services")  # the deletion is done by the next call at the latest
    client.close()
    own_process.end(signal.SIGTERM)
    with ThreescaleControl(own_process.start().url) as control:
        client = client_of(control)

    assert client.service()["id"] > first["id"]
    client.close()


def test_a_deployment_brings_it_and_says_how_to_reach_it(tmp_path: Path) -> None:
    deployment = Deployment(tmp_path / "state")
    deployment.up(clouds=(Cloud.THREESCALE,), only=(services.THREESCALE,), tether=True)
    try:
        env = deployment.env()
        assert (env["THREESCALE_TOKEN"], env["THREESCALE_MASTER_TOKEN"]) == (DEFAULT_TOKEN, DEFAULT_MASTER_TOKEN)
        for path, token, url in (
            ("/admin/api/services.json", DEFAULT_TOKEN, env["THREESCALE_ADMIN_URL"]),
            ("/master/api/providers/2.json", DEFAULT_MASTER_TOKEN, env["THREESCALE_MASTER_URL"]),
        ):
            answer = httpx.get(f"{url}{path}", auth=("", token), trust_env=False, timeout=60)
            assert answer.status_code == 200, answer.text
        with ThreescaleControl.of(deployment) as control:
            control.add_tenant("Beta")
        pid = deployment.kill(services.THREESCALE)
        deployment.wait_service(services.THREESCALE, other_than_pid=pid)
        with ThreescaleControl.of(deployment) as control:
            assert {each.name for each in control.tenants()} == {"master", "3scale", "beta"}
    finally:
        deployment.down(wipe=True)


def test_the_simulator_is_left_out_unless_asked_for(tmp_path: Path) -> None:
    deployment = Deployment(tmp_path / "state")
    deployment.up(clouds=(), only=(services.TEMPORAL, services.THREESCALE), tether=True)
    try:
        assert [row.name for row in deployment.status().services] == [services.TEMPORAL]
        assert not [name for name in deployment.env() if name.startswith("THREESCALE_")]
    finally:
        deployment.down(wipe=True)


def test_its_log_holds_no_tokens(own_process: ThreescaleProcess) -> None:
    with ThreescaleControl(own_process.start().url) as control:
        tenant = control.add_tenant("Gamma")
        client = Client(tenant.url, tenant.token)
        client.call("GET", "services", params={"access_token": tenant.token})
        client.refused("POST", "services", {"name": ""})
        client.close()
    own_process.end(signal.SIGTERM)
    log = (own_process.folder / "threescale.log").read_text()

    assert tenant.token not in log
    assert json.dumps(DEFAULT_TOKEN) not in log
