"""The conditions that the code writes, read off its source: the type, and the reason where both are constants.

A call of one of the functions that write conditions names them as words or as names of its module; what a variable
of the function holds cannot be read off, and is left out.
"""

from __future__ import annotations

import ast
import importlib
from functools import cache
from pathlib import Path

from domain.threescale.conditions import TYPES

ROOT = Path(__file__).parents[2]
UNKNOWN = ""
# Which argument is the type of the condition, and which its reason; or the reason itself.
_WRITERS: dict[str, tuple[int, int | str]] = {
    "with_condition": (1, 2),
    "with_reason": (1, 2),
    "with_failure": (1, 2),
    "with_trouble": (1, 2),
    "with_claim_state": (2, 3),
    "with_account_state": (1, 1),
    "_with_problem": (2, 3),
    "_reporting": (1, 2),
    "_synced": (-1, 2),
    # Of the worlds of Accounts and claims.
    "entering": (0, 0),
    "failing": (0, 1),
    "noted": (0, 1),
    "reaching": (1, "AccountClaimed"),
}
_CONSTRUCTORS = {"Condition", "ServiceCondition", "SetCondition", "MachineCondition", "Finding"}


@cache
def conditions_by_area() -> dict[str, set[tuple[str, str]]]:
    """By area, the types and reasons of the conditions that it writes."""
    found = {
        area: _conditions_in(ROOT / "domain" / area) for area in ("accounts", "claims", "loadbalancers", "instances")
    }
    found["agent"] = _conditions_in(ROOT / "yawollet")
    found["threescale"] = {(type_, UNKNOWN) for types in TYPES.values() for type_ in types}
    return found


def _conditions_in(directory: Path) -> set[tuple[str, str]]:
    return {pair for path in sorted(directory.rglob("*.py")) for pair in _conditions_of(path)}


def _conditions_of(path: Path) -> set[tuple[str, str]]:
    source = path.read_text()
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    module = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    pairs = {_pair(call, module) for call in calls}
    return {pair for pair in pairs if pair[0]}


def _pair(call: ast.Call, module: str) -> tuple[str, str]:
    name = getattr(call.func, "id", "") or getattr(call.func, "attr", "")
    if name in _WRITERS:
        arguments = [_argument(call, place) for place in _WRITERS[name]]
    elif name in _CONSTRUCTORS:
        by_name = {each.arg: each.value for each in call.keywords}
        arguments = [by_name.get("type"), by_name.get("reason")]
    else:
        return UNKNOWN, UNKNOWN
    type_, reason = (_constant(each, module) for each in arguments)
    return type_, reason


def _argument(call: ast.Call, place: int | str) -> ast.expr | None:
    if isinstance(place, str):
        return ast.Constant(place)
    return call.args[place] if 0 <= place < len(call.args) else None


def _constant(node: ast.expr | None, module: str) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.Name):
        return str(getattr(importlib.import_module(module), node.id, UNKNOWN))
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        holder = getattr(importlib.import_module(module), node.value.id, None)
        return str(getattr(holder, node.attr, UNKNOWN))
    return UNKNOWN
