"""Fingerprints of the workflows' code: which of them are not what the last release had.

A fingerprint is made of the code of a workflow's class and of what it is built on, without comments and docstrings.
`released.json` holds those of the last release, and which histories were recorded then; before the first release there
is none. Cutting a release writes them:

    ./run python -m tests.replay.fingerprints --release
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import sys
from pathlib import Path

from temporalio import workflow

from domain.model import Model
from engine.telemetry import version
from tests.replay.recording import HISTORIES
from workers.registry import areas, workflows_of

# What every workflow runs, and is no class of its own.
LOOP = ("domain.runner", "workflows.continue_as_new", "workflows.lifecycle_declaration")
RELEASED = Path(__file__).with_name("released.json")


class Code(Model):
    """A workflow's code at a release, and what was recorded of it."""

    fingerprint: str
    histories: tuple[str, ...] = ()


class Release(Model):
    """What the last release had; without a version none has been made."""

    version: str = ""
    workflows: dict[str, Code] = {}


def now() -> Release:
    """What a release made now would have."""
    found: dict[str, Code] = {}
    for area in areas():
        for each in workflows_of(area):
            kind = workflow._Definition.must_from_class(each).name or each.__name__
            recorded = tuple(sorted(path.stem for path in HISTORIES.glob(f"{kind}-*.json")))
            found[kind] = Code(fingerprint=fingerprint(sources(each)), histories=recorded)
    return Release(version=version(), workflows=dict(sorted(found.items())))


def sources(kind: type) -> list[str]:
    """The code of a workflow's class, of its bases beside it, and of the modules that areas share."""
    ours = [each for each in kind.__mro__ if each.__module__.startswith("workflows.")]
    beside = [each for each in ours if each.__module__ == kind.__module__]
    shared = dict.fromkeys(each.__module__ for each in ours if each not in beside)
    return [*map(inspect.getsource, beside), *(inspect.getsource(sys.modules[name]) for name in (*shared, *LOOP))]


def fingerprint(codes: list[str]) -> str:
    """The same for the same code, however it is laid out and commented."""
    dumped = "\n".join(ast.dump(_without_docstrings(ast.parse(code))) for code in codes)
    return hashlib.sha256(dumped.encode()).hexdigest()[:16]


def changed(released: Release, current: Release) -> list[str]:
    """The workflows whose code is not the released one; a new one is no change."""
    return [
        kind
        for kind, code in current.workflows.items()
        if kind in released.workflows and released.workflows[kind].fingerprint != code.fingerprint
    ]


def unproved(released: Release, current: Release) -> list[str]:
    """The changed workflows that nothing says to be safe: no history recorded since, and no new version to pin by."""
    if current.version != released.version:
        return []
    return [
        kind
        for kind in changed(released, current)
        if set(current.workflows[kind].histories) <= set(released.workflows[kind].histories)
    ]


def last_release() -> Release:
    """As it was written down."""
    return Release.model_validate_json(RELEASED.read_text()) if RELEASED.is_file() else Release()


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return tree


if __name__ == "__main__":
    if sys.argv[1:] == ["--release"]:
        RELEASED.write_text(json.dumps(now().model_dump(mode="json"), indent=1) + "\n")
    else:
        print("\n".join(changed(last_release(), now())) or "no workflow has changed since the last release")
