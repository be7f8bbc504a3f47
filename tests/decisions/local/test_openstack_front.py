"""The proxy before each OpenStack API of the local deployment: its ledger, its faults, and the shapes it shares."""

from __future__ import annotations

import json
import socket
from dataclasses import asdict
from pathlib import Path

import pytest

from localcloud.openstack import build, configuration, contract, database, loopback
from localcloud.openstack.configuration import Layout
from localcloud.openstack.inside.perdure_openstack import faults
from localcloud.openstack.inside.perdure_openstack.faults import BootFaults, Boots, Fault, FaultBoard, refusal
from localcloud.openstack.inside.perdure_openstack.ledger import route_of

ID = "5f9b5f7e-6a0b-4c1d-8e2f-0123456789ab"


def strikes(board: FaultBoard, method: str, path: str, *, project: str | None = None) -> bool:
    return board.strike(method, path, "", b'{"name": "blue"}', project) is not None


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/v2.0/ports", "/v2.0/ports"),
        (f"/v2.0/ports/{ID}", "/v2.0/ports/{id}"),
        (f"/v2.1/servers/{ID}/os-interface/{ID}", "/v2.1/servers/{id}/os-interface/{id}"),
        (f"/v3/projects/{ID.replace('-', '')}/", "/v3/projects/{id}"),
        ("/v2.1/flavors/7", "/v2.1/flavors/{id}"),
        ("/v3/auth/tokens", "/v3/auth/tokens"),
        ("/", "/"),
    ],
)
def test_a_route_is_the_path_without_its_identifiers(path: str, route: str) -> None:
    assert route_of(path) == route


def test_a_fault_takes_the_configured_number_of_calls_after_those_it_lets_pass() -> None:
    board = FaultBoard()
    board.add(Fault(skip=1, count=2))

    assert [strikes(board, "GET", "/v2.0/ports") for _ in range(5)] == [False, True, True, False, False]
    assert (board.report()[0].hits, board.report()[0].count) == (2, 0)


@pytest.mark.parametrize(
    ("fault", "struck"),
    [
        (Fault(method="POST", path="/ports$", project="ours", containing='"blue"'), True),
        (Fault(method="P*"), True),
        (Fault(method="GET"), False),
        (Fault(path="/networks"), False),
        (Fault(project="theirs"), False),
        (Fault(containing="red"), False),
    ],
)
def test_a_fault_takes_calls_that_match_all_it_names(fault: Fault, struck: bool) -> None:
    board = FaultBoard()
    board.add(fault)

    assert strikes(board, "POST", "/v2.0/ports", project="ours") is struck


def test_chance_repeats_with_its_seed() -> None:
    def draw(seed: int) -> list[bool]:
        board = FaultBoard()
        board.add(Fault(probability=0.5, seed=seed))
        return [strikes(board, "GET", "/") for _ in range(30)]

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)
    assert set(draw(1)) == {True, False}


@pytest.mark.parametrize(
    ("service", "status", "shape"),
    [
        ("neutron", 409, {"NeutronError": {"type": "OverQuota", "message": "full", "detail": ""}}),
        ("nova", 403, {"forbidden": {"code": 403, "message": "full"}}),
        ("nova", 500, {"computeFault": {"code": 500, "message": "full"}}),
        ("keystone", 503, {"error": {"code": 503, "title": "Service Unavailable", "message": "full"}}),
        ("neutron", 401, {"error": {"code": 401, "title": "Unauthorized", "message": "full"}}),
    ],
)
def test_a_refusal_has_the_shape_of_the_services_own_errors(service: str, status: int, shape: object) -> None:
    *_, headers, body = refusal(service, Fault(status=status, type="OverQuota", message="full", headers={"A": "b"}))

    assert json.loads(body) == shape
    assert ("A", "b") in headers


def test_a_meaningless_fault_is_refused() -> None:
    for wrong in (Fault(kind="sideways"), Fault(path="(")):
        with pytest.raises(ValueError, match=r"none of|regular expression"):
            FaultBoard().add(wrong)
    with pytest.raises(ValueError, match="unknown: boot_dealy"):
        Boots().change({"boot_dealy": 3})
    with pytest.raises(LookupError):
        FaultBoard().clear("nothing")


def test_both_sides_have_the_same_shapes() -> None:
    assert contract.Fault().model_dump(mode="json") == asdict(Fault())
    assert contract.BootFaults().model_dump(mode="json") == asdict(BootFaults())
    assert tuple(contract.FaultKind) == faults.KINDS


def test_a_socket_has_a_path_that_the_kernel_takes(tmp_path: Path) -> None:
    short, long = Path("/s"), tmp_path / ("x" * 120)

    assert database.socket_of(short) == short / "mariadb.sock"
    assert len(str(database.socket_of(long))) < 108
    assert database.socket_of(long) != database.socket_of(tmp_path / ("y" * 120))


def test_the_next_pair_of_networks_is_taken_while_another_deployment_has_the_first(tmp_path: Path) -> None:
    first = loopback.choose(tmp_path / "first")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as claim:
        claim.bind(first.claim)
        second = loopback.choose(tmp_path / "second")

    assert second.first > first.first
    assert loopback.choose(tmp_path / "first") == first
    assert first.external == f"127.{first.first + 1}.0.0/16"


def test_the_callers_own_cloud_stays_out_of_the_services_environment(tmp_path: Path) -> None:
    layout = Layout(home=tmp_path, socket=tmp_path / "s", urls=configuration.NOWHERE)

    variables = configuration.environment(layout, {"OS_CLOUD": "real", "PYTHONHOME": "elsewhere", "PATH": "p"})

    assert "OS_CLOUD" not in variables
    assert "PYTHONHOME" not in variables
    assert variables["PATH"] == "p"


def test_a_step_of_the_build_counts_only_with_its_stamp(tmp_path: Path) -> None:
    for step in ("environment", "schemas"):
        (tmp_path / build.recipe() / step).mkdir(parents=True)
    assert not build.is_built(tmp_path)

    for step in ("environment", "schemas"):
        (tmp_path / build.recipe() / step / build.STAMP).touch()

    assert build.is_built(tmp_path)
