"""The commands of the documentation run, page by page, on a real API server, emulated AWS and 3scale.

No worker and no watcher: what a page's lifecycles would make is missing, so a `get` may find nothing. What they do is
shown by the tests of the demos, which play the same manifests. Commands of `perdure` are held by
`tests/decisions/test_docs_commands.py`, and the quick start is typed with everything running in
`test_documentation_quick_start.py`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import documented
import pytest
import yaml
from documented import ROOT

from localcloud import services
from localcloud.deployment import Deployment
from localcloud.state import Cloud
from tests.running.failed_servers import end

KUBECTL = shutil.which("kubectl")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.integration,
    pytest.mark.skipif(KUBECTL is None, reason="the pages speak of kubectl, which is not installed"),
]

EXAMPLES = ROOT / "examples"
PRELUDE = """
kubectl() { command kubectl --request-timeout=60s "$@"; }
curl() { command curl --silent --show-error --fail-with-body "$@"; }
"""


class Typed(NamedTuple):
    """A command as it was typed, and what came back."""

    place: str
    text: str
    code: int
    said: str

    @property
    def went_well(self) -> bool:
        """Whether it did what the page says, as far as it can without lifecycles."""
        nothing_yet = " get " in self.text and "(NotFound)" in self.said and "resource.k8s.io" not in self.said
        return self.code == 0 or nothing_yet


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A person's home with a local deployment in it, at the place that the pages name."""
    found = tmp_path_factory.mktemp("home")
    deployment = Deployment(found / ".local" / "state" / "perdure" / "local")
    only = (*services.CLUSTER, services.AWS, services.THREESCALE, services.PREPARATION)
    with pytest.MonkeyPatch.context() as environ:
        environ.setenv("PERDURE_INSTANCES_QUEUES", "123456789012/eu-central-1")  # brings the kinds of Cluster API
        deployment.up(clouds=(Cloud.AWS, Cloud.THREESCALE), only=only, tether=True)
    yield found
    end(deployment)


def type_in(home: Path, lines: list[tuple[str, str]]) -> list[Typed]:
    """Type commands, each with its place, into one shell; nothing stops at a failure."""
    script = [PRELUDE, ". ~/.local/state/perdure/local/env"]
    for at, (_, text) in enumerate(lines):
        script += [f"echo '{at}'", text, 'echo "="$?']
    environ = {"HOME": str(home), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    ran = subprocess.run(
        ["bash", "-c", "exec 2>&1\n" + "\n".join(script)],
        cwd=ROOT,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    found = re.findall(r"^(\d+)\n(.*?)=(\d+)$", ran.stdout, re.MULTILINE | re.DOTALL)
    assert len(found) == len(lines), ran.stdout
    return [Typed(*lines[int(at)], int(code), message) for at, message, code in found]


def commands_of(page: str) -> list[tuple[str, str]]:
    """The commands that the page asks to type, with example values for its placeholders; watches end at once."""
    chosen = [each for each in documented.commands() if each.page == page and documented.is_run(each)]
    return [(each.place, _filled(page, each.text).replace("--watch", "--watch=false")) for each in chosen]


def _filled(page: str, text: str) -> str:
    for word, meant in documented.STANDS_FOR.get(page, {}).items():
        text = text.replace(word, meant)
    return text


@pytest.mark.parametrize("page", documented.RUN)
def test_the_commands_of_a_page_are_understood_and_done(home: Path, page: str) -> None:
    before = [(f"before {page}", text) for text in documented.RUN[page]]
    lines = commands_of(page)
    assert lines
    typed = type_in(home, [*before, *lines])
    assert [each for each in typed if not each.went_well] == []


def test_a_mistyped_command_is_noticed(home: Path) -> None:
    typed = type_in(
        home,
        [
            ("", "kubectl get nosuchkind"),
            ("", "kubectl -n default get secret nothing"),
            ("", "kubectl apply -f none.yaml"),
        ],
    )
    assert [each.went_well for each in typed] == [False, True, False]


def test_every_manifest_is_accepted_unchanged(home: Path) -> None:
    """All of `examples/`, strictly: a field that the server does not know is an error."""
    objects = [each for path in EXAMPLES.rglob("*.yaml") for each in yaml.safe_load_all(path.read_text()) if each]
    named = {str(each["metadata"].get("namespace", "default")) for each in objects}
    spaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in sorted(named)]
    lines = [
        f"kubectl apply -f - <<END\n{yaml.safe_dump_all(spaces)}END",
        "kubectl apply --dry-run=server --validate=strict -R -f examples",
    ]
    typed = type_in(home, [("", line) for line in lines])
    assert [each for each in typed if each.code] == []
    accepted = re.findall(r"\(server dry run\)$", typed[-1].said, re.MULTILINE)
    assert len(accepted) == len(objects)


def test_the_kustomization_of_an_installation_is_built(home: Path, tmp_path: Path) -> None:
    whole, parts, version, addition = (
        yaml.safe_load(each.text)
        for each in documented.blocks_of(ROOT / "deploy" / "README.md")
        if each.language == "yaml"
    )
    whole["resources"] += ["../version"]
    parts["components"].insert(0, "../perdure/deploy/components/versions")
    (tmp_path / "perdure").symlink_to(ROOT)
    for name, kustomization in (("ours", whole | parts | addition), ("version", version)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    (typed,) = type_in(home, [("", f"kubectl kustomize --load-restrictor LoadRestrictionsNone {tmp_path}/ours")])
    assert typed.code == 0, typed.said
    assert "NETWORK_ID: 11111111-1111-1111-1111-111111111111" in typed.said
    assert "image: registry.example.com/perdure:0.1.0" in typed.said
    objects = list(yaml.safe_load_all(typed.said))
    pods = {
        obj["metadata"]["name"]: obj["spec"]["template"]["spec"]["containers"][0]
        for obj in objects
        if obj["kind"] in ("Deployment", "Job")
    }
    processes = {f"perdure-{name}" for name in ("worker-1-5-0", "watch", "events", "codec", "bootstrap")}
    assert set(pods) == processes
    assert pods["perdure-worker-1-5-0"]["image"] == "registry.example.com/perdure:1.5.0"
    (settings,) = {pod["envFrom"][0]["configMapRef"]["name"] for pod in pods.values()}
    assert settings in {obj["metadata"]["name"] for obj in objects if obj["kind"] == "ConfigMap"}
    assert [name for name, pod in pods.items() if "/etc/perdure/temporal-keys" not in str(pod["volumeMounts"])] == []
    (audits,) = (obj for obj in objects if obj["kind"] == "CronJob")
    job = audits["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert job["serviceAccountName"] in {obj["metadata"]["name"] for obj in objects if obj["kind"] == "ServiceAccount"}
