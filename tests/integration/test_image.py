"""The image as far as it can be made without a container engine: the steps of its Dockerfile's build stage, run as they
are in a directory of the test's, and the program that they make.

The packages come from the index that pip is configured for, as `./run` takes them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "deploy" / "image" / "Dockerfile"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def instructions() -> list[str]:
    return [line for line in DOCKERFILE.read_text().splitlines() if line and not line.startswith("#")]


def copied(directory: Path) -> None:
    """What `COPY . .` copies: the tree without what the .dockerignore beside the file excludes."""
    wanted = [line[1:] for line in DOCKERFILE.with_suffix(".dockerignore").read_text().splitlines() if line[:1] == "!"]
    for name in wanted:
        source, target = ROOT / name, directory / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.pyc", "*.egg-info")
            shutil.copytree(source, target, symlinks=True, ignore=ignored, dirs_exist_ok=True)
        else:
            shutil.copy(source, target)


def built(home: Path) -> Path:
    """The last stage's /opt/perdure, made under `home`."""
    places = {"/opt/perdure": home / "opt", "/wheel": home / "wheel", "/build": home / "build", "/src": home / "src"}
    (home / "src").mkdir(parents=True)
    copied(home / "src")
    arguments = dict(re.findall(r"^ARG ([A-Z_]+)=(\S+)$", DOCKERFILE.read_text(), re.MULTILINE))
    environ = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(home), **arguments}
    environ |= {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "XDG_CONFIG", "SSL_"))}
    for line in instructions():
        if line.startswith("RUN "):
            command = re.sub(r"--mount=\S+ ", "", line.removeprefix("RUN "))
            command = re.sub(r"(?<![\w/.])(/opt/perdure|/wheel|/build)\b", lambda place: str(places[place[1]]), command)
            ran = subprocess.run(
                ["sh", "-c", command], cwd=home / "src", env=environ, capture_output=True, text=True, check=False
            )
            assert ran.returncode == 0, f"{line}\n{ran.stderr}"
    return home / "opt"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("image"))


def test_the_image_holds_the_processes_and_none_of_the_local_deployments_servers(image: Path) -> None:
    for command in ("worker", "watch", "events", "crds"):
        output = subprocess.run(
            [image / "bin" / "perdure", command, "--help"], cwd="/", env={}, capture_output=True, text=True, check=False
        )
        assert output.returncode == 0, output.stderr
        assert output.stderr == ""
    present = {path.name for path in (image / "bin").iterdir()}
    assert not {"temporal", "envoy", "moto_server", "pytest", "mypy", "pip"} & present


def test_the_workers_code_imports_without_tools_of_development(image: Path) -> None:
    code = "import workers.main, starters.watch.main, starters.events.main"
    output = subprocess.run(
        [image / "bin" / "python", "-c", code], cwd="/", env={}, capture_output=True, text=True, check=False
    )
    assert output.returncode == 0, output.stderr


def test_the_projects_own_package_is_the_same_when_it_is_built_again(
    image: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (first,) = (image.parent / "wheel").glob("*.whl")
    (line,) = [each for each in instructions() if " pip wheel " in each]
    source = tmp_path / "src"
    source.mkdir()
    copied(source)
    command = line.removeprefix("RUN ").replace("/build", str(image.parent / "build")).replace("/wheel", str(tmp_path))
    (epoch,) = re.findall(r"SOURCE_DATE_EPOCH=(\d+)", DOCKERFILE.read_text())
    environ = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "SOURCE_DATE_EPOCH": epoch}
    subprocess.run(["sh", "-c", command], cwd=source, env=environ, capture_output=True, check=True)
    (second,) = tmp_path.glob("*.whl")
    assert hashlib.sha256(first.read_bytes()).digest() == hashlib.sha256(second.read_bytes()).digest()


def test_the_image_runs_without_root_on_a_base_that_a_digest_can_name() -> None:
    output = instructions()
    assert [line for line in output if line.startswith("USER ")] == ["USER 65532:65532"]
    assert output[0].startswith("ARG PYTHON_IMAGE=")
    assert {line.split()[1] for line in output if line.startswith("FROM ")} == {"${PYTHON_IMAGE}"}
    installs = [line for line in output if "pip" in line and " install " in line]
    assert installs
    assert all("--require-hashes" in line or "--no-index" in line for line in installs)
