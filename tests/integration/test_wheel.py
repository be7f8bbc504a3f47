"""The wheel, installed where there is no checkout: its commands start, and what they read beside the code is there.

The environment is new and holds nothing but the wheel; what the project depends on is lent to it by the one that runs
the tests.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.integration

# Where code, definitions and manifests were found; the first line is the package's own place.
READS = """
import localcloud, pathlib
from localcloud.demo.command import EXAMPLES
from localcloud.demo.scenarios import SCENARIOS
from localcloud.golang import toolchain
from localcloud.kubernetes import build
from localcloud.seed import CLAIMS_RBAC
from localcloud.temporal import programs
print(pathlib.Path(localcloud.__file__).parent)
for name in SCENARIOS:
    assert list((EXAMPLES / name).glob("*.yaml")), name
for path in sorted(EXAMPLES.rglob("*.yaml")):
    print(path)
kubernetes = [build.MODULE / name for name in ("go.mod", "audit-policy.yaml", f"{build.CONTROLLERS}/main.go")]
temporal = [programs.MODULE / name for name in ("go.mod", "go.sum", toolchain.LOCK.name)]
for path in (CLAIMS_RBAC, toolchain.LOCK, *kubernetes, *temporal):
    path.read_text()
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment's `bin`."""
    home = tmp_path_factory.mktemp("wheel")
    # A build leaves its traces in the tree that it builds.
    unwanted = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "tests", "docs")
    shutil.copytree(ROOT, home / "tree", symlinks=True, ignore=unwanted)
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(home), str(home / "tree"))
    (wheel,) = home.glob("*.whl")
    shutil.rmtree(home / "tree")
    venv.create(home / "env", with_pip=False, symlinks=True)
    python = home / "env" / "bin" / "python"
    pip("--python", str(python), "install", "--no-deps", "--no-index", str(wheel))
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    lent = home / "env" / "lib" / version / "site-packages" / "lent.pth"
    lent.write_text(sysconfig.get_path("purelib") + "\n")
    return python.parent


def pip(*arguments: str) -> None:
    ran = subprocess.run([sys.executable, "-m", "pip", "-q", *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def run(program: Path, *arguments: str, cwd: Path) -> str:
    """What it prints, started as a user would far from any checkout."""
    environ = {"PATH": f"{program.parent}:/usr/bin:/bin", "HOME": str(cwd), "COLUMNS": "120"}
    ran = subprocess.run(
        [program, *arguments], cwd=cwd, env=environ, capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    return ran.stdout


def test_the_commands_of_the_local_deployment_join_the_command_line(installed: Path, tmp_path: Path) -> None:
    message = run(installed / "perdure", "--help", cwd=tmp_path)
    for command in ("up", "down", "status", "demo", "bench", "run", "events", "list", "install"):
        assert f" {command} " in message
    assert "accounts" in run(installed / "perdure", "demo", "accounts", "--help", cwd=tmp_path)


def test_the_manifests_of_all_examples_come_with_the_wheel(installed: Path, tmp_path: Path) -> None:
    package, *manifests = run(installed / "python", "-c", READS, cwd=tmp_path).splitlines()
    assert Path(package).is_relative_to(installed.parent), "it is the wheel's code that ran, not the checkout's"
    assert all(Path(path).is_relative_to(package) for path in manifests)
    found = {path.relative_to(Path(package) / "demo"): path.read_text() for path in map(Path, manifests)}
    assert found == {path.relative_to(ROOT): path.read_text() for path in (ROOT / "examples").rglob("*.yaml")}


def test_the_wheel_renders_the_definitions(installed: Path, tmp_path: Path) -> None:
    rendered = list(yaml.safe_load_all(run(installed / "perdure", "crds", cwd=tmp_path)))
    remaining = [yaml.safe_load(path.read_text()) for path in (ROOT / "deploy" / "crds").glob("*_*.yaml")]
    key = "metadata"
    assert sorted(rendered, key=lambda crd: crd[key]["name"]) == sorted(remaining, key=lambda crd: crd[key]["name"])
