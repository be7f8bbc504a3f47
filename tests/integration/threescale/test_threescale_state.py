"""The simulator outlives its process, and is part of a deployment."""

from __future__ import annotations

import json
import signal

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


def test_a_deployment_brings_it_and_says_how_to_reach_it(fresh: Deployment) -> None:
    fresh.up(clouds=(Cloud.THREESCALE,), only=(services.THREESCALE,), tether=True)
    env = fresh.env()
    assert (env["THREESCALE_TOKEN"], env["THREESCALE_MASTER_TOKEN"]) == (DEFAULT_TOKEN, DEFAULT_MASTER_TOKEN)
    for path, token, url in (
        ("/admin/api/services.json", DEFAULT_TOKEN, env["THREESCALE_ADMIN_URL"]),
        ("/master/api/providers/2.json", DEFAULT_MASTER_TOKEN, env["THREESCALE_MASTER_URL"]),
    ):
        answer = httpx.get(f"{url}{path}", auth=("", token), trust_env=False, timeout=60)
        assert answer.status_code == 200, answer.text
    with ThreescaleControl.of(fresh) as control:
        control.add_tenant("Beta")
    pid = fresh.kill(services.THREESCALE)
    fresh.wait_service(services.THREESCALE, other_than_pid=pid)
    with ThreescaleControl.of(fresh) as control:
        assert {each.name for each in control.tenants()} == {"master", "3scale", "beta"}


def test_the_simulator_is_left_out_unless_asked_for(fresh: Deployment) -> None:
    fresh.up(clouds=(), only=(services.TEMPORAL, services.THREESCALE), tether=True)
    assert [row.name for row in fresh.status().services] == [services.TEMPORAL]
    assert not [name for name in fresh.env() if name.startswith("THREESCALE_")]


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
