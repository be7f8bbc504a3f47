"""A production Temporal on the local deployment: what is chosen, found, configured and started."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from engine.encryption import KeyRing
from localcloud import cli, debian, services
from localcloud.deployment import Deployment, DeploymentError
from localcloud.golang import build, toolchain
from localcloud.progress import Silence
from localcloud.state import Cloud, Plan, StateDirectory, choose_ports
from localcloud.temporal import choice, control_plane, postgres, programs, schema
from localcloud.temporal.choice import Database, UnknownChoice
from localcloud.temporal.programs import Postgres, ProductionTemporal

URL = "postgres://perdure:p%40ss@db.example:6432/workflows?sslmode=verify-full"


@pytest.fixture(autouse=True)
def no_choice_of_the_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (choice.VARIABLE, programs.ASSETS, "PERDURE_TEMPORAL_KEYS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory(tmp_path / "state")


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def production(url: str = "") -> ProductionTemporal:
    return ProductionTemporal(
        server=Path("/t/temporal-server"),
        sql_tool=Path("/t/temporal-sql-tool"),
        ui=Path("/t/temporal-ui-server"),
        postgres=None if url else Postgres(programs=Path("/p"), libraries=None),
        url=url,
    )


def plan(temporal: ProductionTemporal, *without: str) -> Plan:
    names = (services.TEMPORAL, *services.TEMPORAL_NEEDS, *services.TEMPORAL_VIEWS, services.WORKER)
    if temporal.url:
        without = (*without, services.POSTGRES)
    wanted = tuple(name for name in names if name not in without)
    return Plan(clouds=(Cloud.AWS,), services=wanted, binaries=None, kubeconfig=None, temporal=temporal)


def table(planned: Plan, state: StateDirectory) -> dict[str, services.Service]:
    ports, _ = choose_ports(services.port_names(planned), {})
    return {row.name: row for row in services.service_table(planned, state, ports)}


def test_the_option_overrides_the_variable_and_the_dev_server_is_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert choice.chosen(None) == "development"
    monkeypatch.setenv(choice.VARIABLE, "postgres")
    assert choice.chosen(None) == "postgres"
    assert choice.chosen("development") == "development"
    assert choice.chosen(f"postgres={URL}") == f"postgres={URL}"


@pytest.mark.parametrize(
    "text",
    ["mysql", "development=x", "postgres=mysql://u@h/n", "postgres=postgres://host/n", "postgres=postgres://u@h:x"],
)
def test_another_choice_is_refused_before_anything_starts(text: str, tmp_path: Path) -> None:
    with pytest.raises(UnknownChoice):
        choice.chosen(text)
    with pytest.raises(DeploymentError):
        Deployment(tmp_path / "state").start(temporal=text)
    assert not (tmp_path / "state").exists()


def test_a_url_names_server_user_databases_and_attributes() -> None:
    found = choice.database_of(URL)
    assert found == Database("db.example", 6432, "perdure", "p@ss", "workflows", (("sslmode", "verify-full"),))
    assert found.visibility == "workflows_visibility"
    assert choice.database_of("postgresql://u@h") == Database("h", 5432, "u", "", "temporal")


@pytest.mark.parametrize("made", [None, production(), production(URL)])
def test_a_plan_names_the_choice_that_it_was_made_from(made: ProductionTemporal | None) -> None:
    assert choice.chosen(choice.of(made)) == choice.of(made)
    assert ("postgres" in choice.of(made), URL in choice.of(made)) == (made is not None, bool(made and made.url))


def test_programs_of_the_user_are_preferred_and_may_come_without_the_web_ui(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, tool = (executable(tmp_path / name) for name in (programs.SERVER, programs.SQL_TOOL))
    monkeypatch.setenv(programs.ASSETS, str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    assert programs.find_programs(Silence()) == (server, tool, None)


def test_the_cached_build_is_used_before_anything_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    home = programs.recipe().home(tmp_path)
    home.mkdir()
    found = programs.find_programs(Silence(), tmp_path)
    assert found == (home / programs.SERVER, home / programs.SQL_TOOL, home / programs.UI)


def test_programs_that_go_would_give_the_same_name_are_built_apart() -> None:
    named = {"a": "example.com/x/cmd/server", "b": "example.com/x/cmd/tool", "c": "example.com/ui/v2/cmd/server"}
    assert build.batches(named) == [{"a": named["a"], "b": named["b"]}, {"c": named["c"]}]
    assert build.batches({"etcd": "example.com/server/v3", "s": "example.com/server"}) == [
        {"etcd": "example.com/server/v3"},
        {"s": "example.com/server"},
    ]


@pytest.mark.parametrize(("system", "own"), [("go1.26.7", True), ("go1.26.8", False), ("go1.27.0", False)])
def test_a_system_go_that_is_too_old_for_the_module_gives_way_to_the_pinned_wheel(
    system: str, own: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable(tmp_path / "bin" / "go").write_text(f"#!/bin/sh\necho {system}\n")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    executable(tmp_path / "go-1.27.3" / "go" / "bin" / "go")
    found = toolchain.find_toolchain(tmp_path, Silence(), programs.MODULE / "go.mod")
    assert (found.own_caches is not None) is own


def test_the_newest_installed_postgresql_that_temporal_can_use_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    for version in (9, 13, 16):
        for name in ("postgres", "initdb"):
            executable(tmp_path / f"usr/lib/postgresql/{version}/bin/{name}")
    executable(tmp_path / "usr/lib/postgresql/17/bin/initdb")
    found = postgres.find(tmp_path / "cache", Silence(), tmp_path)
    assert found == Postgres(programs=tmp_path / "usr/lib/postgresql/16/bin", libraries=None)


def test_without_an_installed_postgresql_debians_package_is_unpacked_into_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unpack(package: str, home: Path, **_: Any) -> None:
        assert package == "postgresql"
        executable(home / "usr/lib/postgresql/15/bin/postgres")
        (home / "usr/lib/x86_64-linux-gnu").mkdir()

    monkeypatch.setattr(debian, "unpack", unpack)
    monkeypatch.setenv("PATH", "/nowhere")
    home = tmp_path / "cache" / "postgresql"
    found = postgres.find(tmp_path / "cache", Silence(), tmp_path)
    assert found == Postgres(programs=home / "usr/lib/postgresql/15/bin", libraries=home / "usr/lib/x86_64-linux-gnu")
    assert postgres.environment(found)["LD_LIBRARY_PATH"] == str(found.libraries)


def test_only_databases_of_the_deployments_own_are_created_again() -> None:
    names = [step[2] for step in schema.steps("temporal", recreated=True)]
    assert names == ["drop-database", "create-database", "setup-schema", "update-schema"] * 2
    assert not [step for step in schema.steps("workflows", recreated=False) if "drop-database" in step]


def test_every_listener_of_the_server_asks_for_a_certificate(state: StateDirectory) -> None:
    ports = {name: number for number, name in enumerate(services.port_names(plan(production())), 7000)}
    proofs = control_plane.certificates(state)
    written = control_plane.server_configuration(choice.database_of(URL), proofs, ports)
    for where in ("internode", "frontend"):
        assert written["global"]["tls"][where]["server"]["requireClientAuth"] is True
        assert written["global"]["tls"][where]["server"]["clientCaFiles"] == [str(proofs.authority)]
    stores = {name: each["sql"] for name, each in written["persistence"]["datastores"].items()}
    assert {each["connectAddr"] for each in stores.values()} == {"db.example:6432"}
    assert [each["databaseName"] for each in stores.values()] == ["workflows", "workflows_visibility"]
    taken = [port for each in written["services"].values() for port in each["rpc"].values() if isinstance(port, int)]
    assert len(taken) == len(set(taken)) == 9


@pytest.mark.parametrize("left_out", [(), (services.CODEC,), services.TEMPORAL_VIEWS])
def test_views_of_the_server_may_be_left_out(left_out: tuple[str, ...], state: StateDirectory) -> None:
    planned = plan(production(URL), *left_out)
    ports = {name: number for number, name in enumerate(services.port_names(planned), 7000)}
    control_plane.prepare(state, ports, production(URL))
    written = (state.data("temporal-production") / "ui.yaml").read_text()
    assert ("codec" in written) is (services.CODEC in planned.services)
    rows = {row.name: row for row in services.service_table(planned, state, ports)}
    assert (rows[services.TEMPORAL].url is None) is (services.TEMPORAL_UI in left_out)


def test_certificates_and_payload_keys_outlive_the_next_start(state: StateDirectory) -> None:
    proofs = control_plane.certificates(state)
    proofs.ensure()
    before = {path: path.read_bytes() for path in proofs.directory.rglob("*") if path.is_file()}
    assert KeyRing(proofs.payload_keys).writing() is not None
    assert {path.stat().st_mode & 0o077 for path in before} == {0}
    proofs.ensure()
    assert {path: path.read_bytes() for path in before} == before


def test_a_renewed_authority_leaves_the_payload_keys_unchanged(state: StateDirectory) -> None:
    proofs = control_plane.certificates(state)
    proofs.ensure()
    keys = {path: path.read_bytes() for path in proofs.payload_keys.iterdir()}
    certificate = proofs.client[0].read_bytes()
    proofs.authority.unlink()
    proofs.ensure()
    assert proofs.client[0].read_bytes() != certificate
    assert {path: path.read_bytes() for path in proofs.payload_keys.iterdir()} == keys


@pytest.mark.parametrize("temporal", [production(), production(URL)], ids=["own", "given"])
def test_workers_start_once_the_namespace_is_made_on_a_server_with_a_schema(
    temporal: ProductionTemporal, state: StateDirectory
) -> None:
    rows = table(plan(temporal), state)
    assert rows[services.TEMPORAL_SCHEMA].after == (() if temporal.url else (services.POSTGRES,))
    assert rows[services.TEMPORAL].after == (services.TEMPORAL_SCHEMA,)
    assert rows[services.TEMPORAL_NAMESPACE].after == (services.TEMPORAL,)
    assert services.TEMPORAL_NAMESPACE in rows[services.WORKER].after
    assert rows[services.TEMPORAL].url == rows[services.TEMPORAL_UI].url
    assert (services.POSTGRES in rows) is not bool(temporal.url)


@pytest.mark.parametrize("temporal", [production(), production(URL)], ids=["own", "given"])
def test_no_command_line_shows_the_databases_password(temporal: ProductionTemporal, state: StateDirectory) -> None:
    rows = table(plan(temporal), state)
    password = control_plane.database(temporal, state, {"postgres": 1}).password
    assert rows[services.TEMPORAL_SCHEMA].environment["SQL_PASSWORD"] == password
    for row in rows.values():
        assert not [word for word in row.command if password in word or URL in word]


def test_processes_come_with_a_certificate_and_encrypt_what_they_write(state: StateDirectory) -> None:
    rows = table(plan(production()), state)
    proofs = control_plane.certificates(state)
    environment = services.public_environment(plan(production()), state, {"temporal": 7000})
    for variables in (environment, rows[services.WORKER].environment):
        assert variables["TEMPORAL_TLS_CLIENT_CERT_PATH"] == str(proofs.client[0])
        assert variables["PERDURE_TEMPORAL_KEYS"] == str(proofs.payload_keys)
    plain = services.public_environment(
        plan(production()).model_copy(update={"temporal": None}), state, {"temporal": 7000}
    )
    assert not {"TEMPORAL_TLS_CLIENT_CERT_PATH", "PERDURE_TEMPORAL_KEYS"} & plain.keys()


def test_payload_keys_of_the_user_go_before_those_of_the_deployment(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERDURE_TEMPORAL_KEYS", "/mine")
    environment = services.public_environment(plan(production()), state, {"temporal": 7000})
    assert environment["PERDURE_TEMPORAL_KEYS"] == "/mine"


def test_a_pid_file_whose_pid_another_program_has_is_removed(tmp_path: Path) -> None:
    lock = tmp_path / "postmaster.pid"
    for pid, stays in ((os.getpid(), False), (2**22, True)):
        lock.write_text(f"{pid}\n/data\n")
        postgres.drop_stale_lock(tmp_path)
        assert lock.exists() is stays


@pytest.mark.parametrize("without", ["postgres", "postgres,temporal-schema"])
def test_a_service_that_temporal_on_postgresql_needs_cannot_be_left_out_alone(without: str, tmp_path: Path) -> None:
    app = typer.Typer()
    cli.register(app)
    command = ["up", "--state", str(tmp_path / "state"), "--temporal", "postgres", "--without", without]
    refused = CliRunner().invoke(app, command)
    assert refused.exit_code == 2
    assert "--temporal postgres=URL" in " ".join(refused.output.replace("│", " ").split())
