"""What the documentation asks people to type and to write is tested: each command, each manifest.

Command lines of `perdure` go through the program's own parser, with nothing behind it. Commands of `kubectl` and
`curl` run in `tests/integration/test_documentation.py`, which also tries every manifest. The rest is below, with its
reason. The tutorial's code is tested by `test_docs_tutorial.py`.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import Any

import documented
import pytest
import typer
import yaml
from documented import ROOT, Block, Command
from openapi_schema_validator import validate

from domain.custom_resources import crd_of
from domain.instances.resources import InterruptionPolicy
from domain.operator_domain import DEFAULT
from engine.settings import Settings, variable_of
from starters.cli.main import build
from starters.cli.object_reference import kind_named, target

COMMANDS = documented.commands()
PERDURE = [each for each in (*COMMANDS, *documented.inline_commands()) if each.program == "perdure"]
INLINE = set(documented.inline_commands())

# Commands that no test types unchanged, by how they begin, and why that is so.
EXEMPT = {
    "./run pytest ": "is what runs this test, and in a copy of the project the table of the tutorial",
    "docker build": "needs a container engine; tests/integration/test_image.py installs and starts what is in it",
    "temporal workflow show": "what it shows is read through the codec server in tests/temporal/test_ui_decoded.py",
    "openstack ": "needs a client that is not installed; the same servers answer in tests/integration/openstack",
    "image=$(aws": "needs the aws client; tests/integration/test_demo_instances.py makes the same calls",
    "id=$(aws": "needs the aws client; tests/integration/test_demo_instances.py makes the same calls",
    "aws ": "needs the aws client; tests/integration/test_demo_instances.py makes the same calls",
    "for node in": "needs machines in OpenStack; tests/integration/test_demos_on_openstack.py starts the same nodes",
    "curl http://$(kubectl": "needs machines in OpenStack; tests/integration/test_demos_on_openstack.py sends requests",
    "kill -9 PID": "tests/integration/test_local_deployment.py kills what runs, tests/chaos everything else",
    "source .venv/bin/activate": "the tests run in that environment",
    ". .venv/bin/activate": "the tests run in that environment",
}
# Demos are played by tests of their own; that of `api` plays the manifests of examples/api.
DEMOS = {"api": "tests/decisions/local/demo/test_demo_of_api.py"}


@cache
def parser() -> Any:
    """The command line, of which every command checks its object's kind and does nothing."""
    found = typer.main.get_command(build())
    silence(found)
    return found


def silence(command: Any) -> None:
    def check(*_: object, **given: object) -> None:
        kind, name = given.get("kind"), given.get("name")
        if kind in (None, "", "KIND", "greeting"):  # the tutorial's
            return
        if not name:
            kind_named(str(kind))
        else:
            target(str(kind), str(name).replace("NAMESPACE", "a").replace("NAME", "b"))

    command.callback = check
    for below in getattr(command, "commands", {}).values():
        silence(below)


def perdure_words(command: Command) -> list[str]:
    """What follows `perdure`, up to a pipe; brackets around what may be left out are dropped."""
    words = command.words[command.words.index("perdure") + 1 :]
    words = words[: words.index("|")] if "|" in words else words
    return [__file__ if word == "FILE" else word.strip("[]") for word in words]


@pytest.mark.parametrize("command", PERDURE, ids=lambda each: f"{each.place} {each.text[:60]}")
def test_every_command_line_of_perdure_is_understood(command: Command) -> None:
    try:
        parser().main(perdure_words(command), prog_name="perdure", standalone_mode=False)
    except Exception as error:
        # A sentence may name a command without what it needs.
        if type(error).__name__ != "MissingParameter" or command not in INLINE or "-" in command.text:
            pytest.fail(f"{command.place}: {command.text}\n{type(error).__name__}: {error}")


def test_a_command_line_that_is_wrong_is_not_understood() -> None:
    for wrong in (["why", "nosuchkind", "a/b"], ["list", "--nosuchflag"], ["nosuchcommand"], ["events", "forget", "1"]):
        with pytest.raises(Exception, match=r"(?i)no such|nosuch"):
            parser().main(wrong, prog_name="perdure", standalone_mode=False)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: f"{each.place} {each.text[:60]}")
def test_every_command_is_held_by_something(command: Command) -> None:
    exempt = any(command.text.startswith(start) for start in EXEMPT)
    assert exempt or command.program == "perdure" or documented.is_run(command) or command.program == "helm", (
        f"{command.place}: no test types this: {command.text}"
    )


def test_every_path_in_a_command_is_there() -> None:
    paths = [
        (command.place, path)
        for command in (*COMMANDS, *INLINE)
        for path in re.findall(r"(?<![\w/.])(?:tests|deploy|docs|examples|\.ci)/[\w/.-]*", command.text)
    ]
    assert len(paths) > 40
    missing = [each for each in paths if not (ROOT / each[1]).exists() and "test_greetings" not in each[1]]
    assert missing == []


def test_every_page_that_has_a_test_of_its_own_has_it() -> None:
    assert [test for test in documented.TYPED_LIVE.values() if not (ROOT / test).exists()] == []


def test_every_exemption_is_needed() -> None:
    assert [start for start in EXEMPT if not any(each.text.startswith(start) for each in COMMANDS)] == []


def test_every_test_that_an_exemption_names_is_there() -> None:
    named = re.findall(r"tests/[\w/.]+", " ".join([*EXEMPT.values(), *DEMOS.values()]))
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_documented_demo_is_played_by_a_test() -> None:
    tests = "".join(path.read_text() for path in (ROOT / "tests" / "integration").rglob("test_demo*.py"))
    named = {words[1] for words in map(perdure_words, PERDURE) if words[:1] == ["demo"] and len(words) > 1}
    assert named
    assert [name for name in named if f'"demo", "{name}"' not in tests and name not in DEMOS] == []


@pytest.mark.parametrize("command", [each for each in COMMANDS if each.program == "helm"], ids=lambda each: each.place)
def test_values_set_for_helm_are_in_the_charts_schema(command: Command) -> None:
    words = command.words
    assert (ROOT / words[3] / "Chart.yaml").exists()
    pairs = [words[at + 1].split("=", 1) for at, word in enumerate(words) if word == "--set"]
    for path, value in pairs:
        given: object = value
        for key in reversed(path.split(".")):
            given = {key: given}
        check_values(given)


def check_values(given: object) -> None:
    """Fails where the chart's schema refuses values, or does not know them."""
    schema = yaml.safe_load((ROOT / "deploy" / "chart" / "perdure" / "values.schema.json").read_text())
    schema.pop("$schema", None)
    validate(given, schema | {"required": []})
    check_known(given, schema, "")


def check_known(given: object, schema: dict[str, Any], path: str) -> None:
    if isinstance(given, dict) and "properties" in schema:
        for key, value in given.items():
            assert key in schema["properties"], f"the chart has no value {path}{key}"
            check_known(value, schema["properties"][key], f"{path}{key}.")


BLOCKS = [each for each in documented.blocks() if each.page != "docs/adding-a-lifecycle.md"]
YAML = [each for each in BLOCKS if each.language == "yaml"]


@pytest.mark.parametrize("block", YAML, ids=lambda each: each.place)
def test_every_piece_of_yaml_is_known_to_who_reads_it(block: Block) -> None:
    given = yaml.safe_load(block.text)
    if block.page in ("docs/deployment.md", "docs/temporal.md"):
        check_values(given)
    elif "configMapGenerator" in given:
        (generator,) = given["configMapGenerator"]
        names = {line.partition("=")[0] for line in generator["literals"]}
        assert names <= {variable_of(name) for name in Settings.model_fields}
    elif "components" in given:
        paths = [ROOT / path.removeprefix("../perdure/") for path in given["components"]]
        assert [path for path in paths if not (path / "kustomization.yaml").exists()] == []
    elif given.get("kind") == InterruptionPolicy.kind_of.name:
        version: Any = crd_of(InterruptionPolicy, DEFAULT)["spec"]
        validate(given, version["versions"][0]["schema"]["openAPIV3Schema"])
        known = InterruptionPolicy.model_validate(given).spec.model_dump(mode="json", exclude_unset=True)
        assert known == given["spec"]
    else:
        assert given.get("kind") == "Kustomization" or set(given) == {"status"}, "write here who reads it"


@pytest.mark.parametrize("block", [each for each in BLOCKS if each.language == "python"], ids=lambda each: each.place)
def test_imports_in_the_docs_exist(block: Block) -> None:
    tree = ast.parse(block.text)
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    exec(compile(ast.Module(imports, []), block.place, "exec"), {})


def test_every_block_says_what_it_is() -> None:
    known = {*documented.SHELL, "yaml", "toml", "python", "text"}
    assert [each.place for each in documented.blocks() if each.language not in known] == []


def test_commands_are_found_with_their_continuations_and_without_what_they_print() -> None:
    block = Block(
        "docs/index.md", 1, "", "$ one \\\n    two  # said\nprinted\n$ three '{\n}'\n$ for x in y; do\n z\ndone\n"
    )
    assert [each.text.split() for each in documented.commands_of(block)] == [
        ["one", "\\", "two", "#", "said"],
        ["three", "'{", "}'"],
        ["for", "x", "in", "y;", "do", "z", "done"],
    ]
