"""What the agent reports of its machine: conditions, metrics, keepalived; its flags; ad-hoc debugging."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from domain.loadbalancers.machine_health import RELEVANT
from domain.loadbalancers.resources import LoadBalancer, MachineCondition
from domain.resource import timestamp
from yawollet.command import register
from yawollet.conditions import Finding, config_ready, envoy_ready, envoy_up_to_date, reported
from yawollet.debugging import ad_hoc_debug
from yawollet.keepalived import findings, read_statistics
from yawollet.measurements import envoy_values, keepalived_values, machine_values, metrics
from yawollet.options import Address, interface_address, requeue_time, server_address

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
BEFORE = timestamp(NOW - timedelta(minutes=5))
MARK = MachineCondition(type="MarkedForDeletion", status="True", reason="PendingDeletion", last_transition_time=BEFORE)

DUMP = """------< VRRP Topology >------
 VRRP Instance: OTHER
   Became master: 9
   Released master: 0
 VRRP Instance: ENVOY
   Advertisements:
     Received: 4
     Sent: 12
   Became master: 2
   Released master: 1
   Packet Errors:
     Length: 0
     TTL: 0
   Authentication Errors:
     Invalid Type: 0
   Priority Zero:
     Received: 0
     Sent: 1
"""


def finding(*, met: bool = True) -> Finding:
    return Finding(type="EnvoyReady", met=met, reason="EnvoyReady", message="envoy response with 200")


def condition(status: str = "True") -> MachineCondition:
    return MachineCondition(
        type="EnvoyReady", status=status, last_heartbeat_time=BEFORE, last_transition_time=BEFORE, reason="EnvoyReady"
    )


# Conditions.


def test_a_condition_that_stays_beats_and_keeps_its_transition() -> None:
    (found,) = reported([condition()], [finding()], NOW)
    assert (found.last_heartbeat_time, found.last_transition_time) == (timestamp(NOW), BEFORE)


def test_a_condition_that_turns_has_its_transition_now() -> None:
    (found,) = reported([condition()], [finding(met=False)], NOW)
    assert (found.status, found.last_transition_time) == ("False", timestamp(NOW))


def test_a_first_report_has_its_transition_now() -> None:
    (found,) = reported([], [finding()], NOW)
    assert found.last_transition_time == timestamp(NOW)


def test_conditions_of_others_stay_unchanged() -> None:
    found = reported([MARK, condition()], [finding()], NOW)
    assert [each.type for each in found] == ["EnvoyReady", "MarkedForDeletion"]
    assert found[1] == MARK


def test_the_three_decisive_conditions_are_reported_with_yawols_reasons() -> None:
    found = (
        config_ready(changed=True),
        envoy_ready(""),
        envoy_up_to_date(3, ("3", "3")),
        config_ready(changed=False),
    )
    assert tuple(each.type for each in found[:3]) == RELEVANT
    assert all(each.met for each in found)
    assert [(each.reason, each.message) for each in found] == [
        ("EnvoyConfigurationUpToDate", "envoy config is successfully updated"),
        ("EnvoyReady", "envoy response with 200"),
        ("EnvoySnapshotUpToDate", "envoy is up to date"),
        ("EnvoyConfigurationCreated", "envoy config is already up to date"),
    ]


def test_envoys_refusal_is_the_message_of_config_ready_word_for_word() -> None:
    found = config_ready(changed=True, faults=["cannot bind '203.0.113.7:80': Permission denied"])
    assert (found.met, found.reason) == (False, "EnvoyConfigurationFailed")
    assert found.message == "cannot bind '203.0.113.7:80': Permission denied"


@pytest.mark.parametrize(
    ("served", "versions", "message"),
    [
        (3, None, "unable to get envoy snapshot version"),
        (3, ("3", "2"), "envoy is not up to date"),
        (None, ("", ""), "envoy is not up to date"),
    ],
)
def test_envoy_is_not_up_to_date_until_both_versions_are_the_snapshots(
    served: int | None, versions: tuple[str, str] | None, message: str
) -> None:
    found = envoy_up_to_date(served, versions)
    assert (found.met, found.reason, found.message) == (False, "EnvoySnapshotUpToDate", message)


# keepalived.


def test_keepalived_is_read_by_the_instance_that_holds_the_address() -> None:
    found = read_statistics(DUMP)
    assert (found.became_master, found.released_master, found.sent, found.received) == (2, 1, 12, 4)
    assert found.is_master


def keepalived(
    tmp_path: Path, dump: str = DUMP, pid: str | bytes | None = None, age: float = 0
) -> dict[str, tuple[bool, str]]:
    stats = tmp_path / "keepalived.stats"
    stats.write_text(dump)
    written = NOW.timestamp() - age
    os.utime(stats, (written, written))
    if pid is not None:
        (tmp_path / "keepalived.pid").write_bytes(pid if isinstance(pid, bytes) else pid.encode())
    found, _ = findings(stats, tmp_path / "keepalived.pid", NOW)
    return {each.type: (each.met, each.reason) for each in found}


def test_a_running_master_is_reported_as_such(tmp_path: Path) -> None:
    assert keepalived(tmp_path, pid=f"{os.getpid()}\n") == {
        "KeepalivedStatsFile": (True, "StatsUpToDate"),
        "KeepalivedMaster": (True, "KeepalivedStatus"),
        "KeepalivedProcess": (True, "KeepalivedIsRunning"),
    }


def test_an_agent_that_released_the_address_as_often_is_not_master(tmp_path: Path) -> None:
    dump = DUMP.replace("Released master: 1", "Released master: 2")
    assert keepalived(tmp_path, dump)["KeepalivedMaster"] == (False, "KeepalivedStatus")


def test_old_statistics_are_reported(tmp_path: Path) -> None:
    assert keepalived(tmp_path, age=299)["KeepalivedStatsFile"] == (True, "StatsUpToDate")
    assert keepalived(tmp_path, age=301)["KeepalivedStatsFile"] == (False, "StatsNotUpToDate")


@pytest.mark.parametrize("dump", ["", "VRRP Instance: ENVOY\n  Became master: 1\n", "VRRP Instance: ENVOY\n  [\n"])
def test_statistics_that_cannot_be_read_are_reported(tmp_path: Path, dump: str) -> None:
    found = keepalived(tmp_path, dump)
    assert found["KeepalivedStatsFile"] == found["KeepalivedMaster"] == (False, "CouldNotReadStats")


@pytest.mark.parametrize(
    ("pid", "reason"),
    [
        (None, "CouldNotGetPIDFile"),
        ("none", "CouldNotGetPID"),
        (b"\xff\xfe\x00", "CouldNotGetPID"),
        ("1" * 5000, "CouldNotGetPID"),
        ("99999999999999999999", "CouldNotGetPID"),
        ("4194999", "CouldNotKeepalivedProcess"),
    ],
)
def test_a_keepalived_that_does_not_run_is_reported(tmp_path: Path, pid: str | bytes | None, reason: str) -> None:
    assert keepalived(tmp_path, pid=pid)["KeepalivedProcess"] == (False, reason)


def test_a_machine_without_keepalived_speaks_of_its_process_only(tmp_path: Path) -> None:
    found, statistics = findings(None, tmp_path / "keepalived.pid", NOW)
    assert [each.type for each in found] == ["KeepalivedProcess"]
    assert statistics is None


# Metrics.


def test_the_machine_is_measured_in_bytes_and_seconds() -> None:
    found = machine_values(cpus=2)
    assert set(found) == {
        *("load1", "load5", "load15", "uptime", "memTotal", "memFree", "memAvailable", "stealTime", "numCPU")
    }
    assert int(found["memTotal"]) > int(found["memAvailable"]) > 2**20
    assert int(found["uptime"]) > 0
    assert found["load1"].partition(".")[2].isdigit()
    assert len(found["stealTime"].partition(".")[2]) == 2
    assert found["numCPU"] == "2"


def test_envoys_counts_of_each_cluster_are_reported_and_no_others() -> None:
    counted = {
        "cluster.TCP-80.upstream_cx_active": "1",
        "cluster.TCP-80.upstream_cx_rx_bytes_total": "5",
        "cluster.UDP-53.upstream_cx_connect_fail": "2",
        "cluster.TCP-80.upstream_cx_connect_timeout": "3",
        "cluster.TCP-80.circuit_breakers.default.upstream_cx_total": "4",
        "cluster.xds_cluster.upstream_cx_total": "5",
        "tcp.envoytcp.idle_timeout": "6",
        "tcp.envoytcp.downstream_cx_total": "7",
    }
    assert envoy_values(counted) == {
        "TCP-80-upstream_cx_active": "1",
        "TCP-80-upstream_cx_rx_bytes_total": "5",
        "UDP-53-upstream_cx_connect_fail": "2",
        "envoytcp-idle_timeout": "6",
    }


def test_keepaliveds_numbers_are_reported_where_there_are_any() -> None:
    assert keepalived_values(None) == {}
    assert keepalived_values(read_statistics(DUMP)) == {
        "keepalivedIsMaster": "1",
        "keepalivedReleasedMaster": "1",
        "keepalivedBecameMaster": "2",
        "keepalivedAdvertisementsSent": "12",
        "keepalivedAdvertisementsReceived": "4",
    }


def test_every_metric_carries_the_moment() -> None:
    assert {each.timestamp for each in metrics(NOW, {}, None, cpus=1)} == {timestamp(NOW)}


# Ad-hoc debugging.


def wishing(key: str = "ssh-rsa AAAA", *, enabled: str = "true", debug: bool = False) -> LoadBalancer:
    annotations = {"yawol.stackit.cloud/adHocDebug": enabled, "yawol.stackit.cloud/adHocDebugSSHKey": key}
    return LoadBalancer.model_validate(
        {"metadata": {"annotations": annotations}, "spec": {"debugSettings": {"enabled": debug}}}
    )


def sudo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str = "") -> Path:
    """The machine image's sudo, which writes down what it runs and is given, and refuses one program."""
    log, program = tmp_path / "log", tmp_path / "sudo"
    program.write_text(
        f'#!/bin/sh\nif [ "$1" = "{refused}" ]; then echo denied >&2; exit 1; fi\n(echo "$@"; cat) >>{log}\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return log


@pytest.mark.parametrize("key", ["ssh-rsa AAAA", "ssh-rsa AAAAB3Nza+/x=="])
async def test_the_key_is_written_and_sshd_started_as_the_image_allows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    log = sudo(tmp_path, monkeypatch)
    reported = await ad_hoc_debug(wishing(key))
    assert reported is not None
    assert (reported.type, reported.reason) == ("Warning", "AdHocDebuggingEnabled")
    assert log.read_text().splitlines() == ["tee /home/yawoldebug/.ssh/authorized_keys", key, "rc-service sshd start"]


@pytest.mark.parametrize("refused", ["tee", "rc-service"])
async def test_a_machine_that_does_not_let_a_key_in_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    sudo(tmp_path, monkeypatch, refused)
    reported = await ad_hoc_debug(wishing())
    assert reported is not None
    assert (reported.type, reported.reason) == ("Warning", "AdHocDebuggingNotEnabled")
    assert reported.message.startswith(f"Ad-hoc debugging is not enabled: sudo {refused}")
    assert reported.message.endswith("exit code 1: denied")


@pytest.mark.parametrize(("key", "enabled"), [("", "true"), ("ssh-rsa AAAA", "no"), ("ssh-rsa AAAA", "")])
async def test_nothing_is_let_in_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, enabled: str
) -> None:
    log = sudo(tmp_path, monkeypatch)
    assert await ad_hoc_debug(wishing(key, enabled=enabled)) is None
    assert not log.exists()


@pytest.mark.parametrize(
    ("key", "debug", "why"),
    [
        ("ssh-ed25519 AAAA", False, "must have the form"),
        ("ssh-rsa AAAA me@home", False, "must have the form"),
        ("ssh-rsa AAAA\nssh-rsa BBBB", False, "must have the form"),
        ("ssh-rsa AAAA\n", False, "must have the form"),
        ("ssh-rsa ", False, "must have the form"),
        ("ssh-rsa AAAA", True, "debugSettings"),
    ],
)
async def test_a_refused_wish_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, debug: bool, why: str
) -> None:
    log = sudo(tmp_path, monkeypatch)
    reported = await ad_hoc_debug(wishing(key, debug=debug))
    assert reported is not None
    assert (reported.reason, log.exists()) == ("AdHocDebuggingNotEnabled", False)
    assert why in reported.message


# Flags.


@pytest.mark.parametrize(("text", "seconds"), [("30", 30), ("1", 5), ("171", 170), ("1m", 60), ("0", 5), ("90s", 90)])
def test_the_time_between_two_passes_stays_within_yawols_limits(text: str, seconds: int) -> None:
    assert requeue_time(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("0", None),
        ("", None),
        ("127.0.0.1:8080", ("127.0.0.1", 8080)),
        (":80", ("0.0.0.0", 80)),
        ("[::1]:8", ("::1", 8)),
    ],
)
def test_an_address_is_read_and_nought_turns_its_server_off(text: str, address: tuple[str, int] | None) -> None:
    assert server_address(text) == (Address(host=address[0], port=address[1]) if address else None)


@pytest.mark.parametrize("text", ["8080", "host:", "host:http"])
def test_a_text_that_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an address"):
        server_address(text)


def test_an_interface_is_listened_at_by_its_last_ipv4_address() -> None:
    assert interface_address("lo").startswith("127.")
    with pytest.raises(ValueError, match="no IPv4 address"):
        interface_address("no-such-interface")


@pytest.mark.parametrize(
    ("flag", "code"),
    [("--zap-devel", 0), ("--zap-devel=true", 0), ("--zap-devel=false", 0), ("--zap-development", 2)],
)
def test_the_bool_flag_may_have_a_value_as_in_go(flag: str, code: int) -> None:
    app = typer.Typer()
    register(app)
    assert CliRunner().invoke(app, [flag, "--help"]).exit_code == code
