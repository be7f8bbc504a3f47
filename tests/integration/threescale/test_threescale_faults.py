"""The simulator's faults, ledger and settings, as tests and benchmarks use them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import httpx
import pytest
from threescale_process import Client, client_of, fresh
from waiting import until

from localcloud.control import ControlRefusedError
from localcloud.threescale.contract import UNSEEN_HEADER
from localcloud.threescale.control import ThreescaleControl

pytestmark = pytest.mark.integration

LOST = (httpx.RemoteProtocolError, httpx.ReadError)


def names(client: Client) -> list[str]:
    return [each["name"] for each in client.list("services")]


def test_a_call_lost_before_its_effect_did_nothing(client: Client, control: ThreescaleControl) -> None:
    control.fault("POST", "/services", kind="before", count=1)
    name = fresh("Lost")
    with pytest.raises(LOST):
        client.call("POST", "services", {"name": name})

    assert name not in names(client)
    assert client.service(name)


@pytest.mark.parametrize("kind", ["after", "cut"])
def test_a_call_lost_after_its_effect_was_done(client: Client, control: ThreescaleControl, kind: str) -> None:
    """The connection ends before the answer, or in its middle."""
    control.fault("POST", "/services", kind=kind, count=1)
    name = fresh("Lost")
    with pytest.raises(LOST):
        client.call("POST", "services", {"name": name})

    assert names(client).count(name) == 1


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (403, {"error": "Access denied"}),
        (404, {"status": "Not found"}),
        (409, ""),
        (422, {"errors": {"system_name": ["has already been taken"]}}),
    ],
)
def test_a_refusal_looks_as_3scale_makes_it(
    client: Client, control: ThreescaleControl, status: int, body: object
) -> None:
    control.fault("POST", "/services", status=status, count=1)

    assert client.refused("POST", "services", {"name": fresh("No")}) == (status, body)


def test_a_proxy_in_front_of_3scale_answers_with_a_page(client: Client, control: ThreescaleControl) -> None:
    control.fault(status=429, headers={"Retry-After": "7"}, count=1)
    answer = client.call("GET", "services")

    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "7")
    assert answer.headers["Content-Type"].startswith("text/html")
    assert "429 Too Many Requests" in answer.text


def test_a_refusal_may_come_after_the_effect(client: Client, control: ThreescaleControl) -> None:
    control.fault("POST", "/signup", kind="refuse-after", status=409, count=1)
    name = fresh("dev").replace(" ", "")
    answer = client.call("POST", "signup", {"org_name": name, "username": name})

    assert (answer.status_code, answer.content) == (409, b"")
    assert client.get("accounts/find", username=name)["account"]["org_name"] == name


@contextmanager
def waiting(client: Client, name: str) -> Iterator[threading.Thread]:
    """A program that creates a product and waits for the answer, for as long as it takes."""

    def create() -> None:
        with suppress(httpx.HTTPError):
            client.call("POST", "services", {"name": name}, timeout=None)

    thread = threading.Thread(target=create)
    thread.start()
    yield thread
    thread.join()


@pytest.mark.parametrize("late_answer", [True, False])
def test_a_call_that_hangs_ends_when_the_fault_is_lifted(
    client: Client, control: ThreescaleControl, late_answer: bool
) -> None:
    control.fault("POST", "/services", kind="hang", late_answer=late_answer)
    name = fresh("Hang")
    with client_of(control) as other, waiting(other, name) as thread:
        until(lambda: control.ledger().calls("POST", "/admin/api/services") == 1, "the call is entered")
        assert (name in names(client)) is late_answer
        assert thread.is_alive()
        control.clear()

    assert (name in names(client)) is late_answer


def test_a_call_that_hangs_ends_when_its_client_gives_up(client: Client, control: ThreescaleControl) -> None:
    control.fault("GET", "/services", kind="hang", count=1)
    with pytest.raises(httpx.ReadTimeout):
        client.call("GET", "services", timeout=0.2)

    assert client.list("services")


def test_a_tenant_that_hangs_blocks_no_other(client: Client, tenant: Client, control: ThreescaleControl) -> None:
    hanging = next(each.name for each in control.tenants() if each.url == tenant.url)
    control.fault(tenant=hanging, kind="hang")
    with waiting(tenant, fresh("Stuck")) as thread:
        until(lambda: control.ledger().calls(tenant=hanging) == 1, "the call is entered")
        assert client.list("services")
        assert thread.is_alive()
        control.clear()


@pytest.mark.parametrize("late_answer", [True, False])
def test_a_late_call_does_its_work_before_or_after_the_wait(
    client: Client, control: ThreescaleControl, late_answer: bool
) -> None:
    control.fault("POST", "/services", kind="delay", delay_seconds=3600, late_answer=late_answer)
    name = fresh("Late")
    with client_of(control) as other, waiting(other, name):
        until(lambda: control.faults()[0].hits == 1, "the fault strikes")
        assert (name in names(client)) is late_answer
        control.clear()

    assert name in names(client)


def test_latency_is_added_to_every_call(client: Client, control: ThreescaleControl) -> None:
    control.config(latency_ms=300)
    began = time.monotonic()
    client.list("services")

    assert time.monotonic() - began >= 0.3


def test_a_fault_takes_the_calls_it_names(client: Client, control: ThreescaleControl) -> None:
    control.fault("PUT", "/services/", containing="doomed", skip=1, count=1, status=500)
    own = f"services/{client.service()['id']}"
    outcomes = [
        client.call("PUT", own, {"description": text}).status_code for text in ("doomed", "fine", "doomed", "doomed")
    ]

    assert outcomes == [200, 200, 500, 200]
    assert [(fault.hits, fault.count) for fault in control.faults()] == [(1, 0)]


def test_faults_by_chance_repeat_with_their_seed(client: Client, control: ThreescaleControl) -> None:
    def outcomes() -> list[int]:
        control.clear()
        control.fault("GET", probability=0.5, seed=7)
        return [client.call("GET", "services").status_code for _ in range(12)]

    first = outcomes()
    assert set(first) == {200, 503}
    assert outcomes() == first


def test_the_clock_of_a_3scale_may_be_wrong(client: Client, control: ThreescaleControl) -> None:
    right = client.service()["created_at"]
    control.config(clock_skew_seconds=-86400)

    assert client.service()["created_at"] < right[:10]


def test_the_ledger_counts_by_tenant_method_and_route(
    client: Client, tenant: Client, control: ThreescaleControl
) -> None:
    control.reset_ledger()
    made = client.service()
    client.put(f"services/{made['id']}", description="x")
    client.refused("GET", "services/1")
    client.refused("GET", "nowhere")
    tenant.list("services")
    ledger = control.ledger(recent=True)

    assert ledger.by_route() == {
        "GET /admin/api/services": 1,
        "GET /admin/api/services/{service}": 1,
        "GET unknown": 1,
        "POST /admin/api/services": 1,
        "PUT /admin/api/services/{service}": 1,
    }
    assert (ledger.mutating(), ledger.reading(), ledger.calls(tenant="3scale")) == (2, 3, 4)
    assert [call.status for call in ledger.recent] == [201, 200, 404, 404, 200]
    assert sum(count.errors for count in ledger.counts) == 2


def test_the_ledger_knows_no_tokens(client: Client, control: ThreescaleControl) -> None:
    client.call("GET", "services", params={"access_token": client.token, "page": 2})
    (call,) = control.ledger(recent=True).recent

    assert call.query == "page=2"


def test_changes_behind_a_clients_back_are_neither_counted_nor_disturbed(
    client: Client, control: ThreescaleControl
) -> None:
    control.fault(status=500)
    answer = client.call("POST", "services", {"name": fresh("Unseen")}, headers={UNSEEN_HEADER: "1"})

    assert answer.status_code == 201
    assert control.ledger().calls() == 0


def test_the_world_shows_what_a_tenant_holds(tenant: Client, control: ThreescaleControl) -> None:
    name = next(each.name for each in control.tenants() if each.url == tenant.url)
    service = tenant.used_service()
    tenant.post(f"accounts/{tenant.account()['id']}/applications", plan_id=tenant.plan(service)["id"], name="App")
    world = control.world(name)

    assert [each["system_name"] for each in world.tables["services"]] == ["api", service["system_name"]]
    counts = {
        table: world.count(table) for table in ("backends", "backend_usages", "accounts", "applications", "users")
    }
    # A new tenant has an admin, and a sample of a developer with a user and an application.
    assert counts == {"backends": 1, "backend_usages": 1, "accounts": 2, "applications": 2, "users": 3}
    assert world.count("mapping_rules") == 2
    tenant.delete(f"services/{service['id']}")
    assert control.world(name).count("applications") == 1


def test_settings_and_faults_that_mean_nothing_are_refused(control: ThreescaleControl) -> None:
    with pytest.raises(ControlRefusedError, match="latency"):
        control.config(latency="much")
    with pytest.raises(ControlRefusedError, match="regular expression"):
        control.fault(path="(")
    with pytest.raises(ControlRefusedError, match="no fault"):
        control.clear("nothing")
    with pytest.raises(ControlRefusedError, match="no tenant"):
        control.world("nobody")
