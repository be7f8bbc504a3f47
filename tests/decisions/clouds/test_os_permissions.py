"""The declared calls to OpenStack are those that the code makes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from activities import openstack
from activities.openstack.permissions import PERMISSIONS, Permission
from starters.cli.iam import iam_files

OPERATIONS = {"pages": "list", "get": "get", "post": "create", "put": "update", "delete": "delete"}
APIS = {"NOVA": "nova", "NEUTRON": "neutron", "GLANCE": "glance"}

Called = tuple[str, str, str]


def calls() -> Iterator[ast.Call]:
    for file in Path(openstack.__path__[0]).glob("*.py"):
        yield from (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call))


def called() -> set[Called]:
    """API, kind of object and operation of each call on a project; `_got` and `_deletion` are given API and kind."""
    found: set[Called] = set()
    for call in calls():
        match call:
            case ast.Call(
                func=ast.Attribute(attr=method), args=[ast.Attribute(value=ast.Name("Api"), attr=api), kind, *_]
            ):
                fields = {each.arg: each.value for each in call.keywords}
                operation = fields.get("operation", ast.Constant(OPERATIONS.get(method, "")))
                if method in OPERATIONS and isinstance(kind, ast.Constant):
                    assert isinstance(operation, ast.Constant)
                    found.add((APIS[api], str(kind.value), str(operation.value)))
            case ast.Call(func=ast.Name("_got"), args=[_, ast.Attribute(attr=api), ast.Constant(kind_), *_]):
                found.add((APIS[api], str(kind_), "get"))
            case ast.Call(func=ast.Name("_deletion"), args=[ast.Attribute(attr=api), ast.Constant(kind_), *_]):
                found.add((APIS[api], str(kind_), "delete"))
    return found


def test_every_call_is_declared_and_every_declaration_is_called() -> None:
    assert called() == {(item.api, item.object, item.operation) for item in PERMISSIONS}


@pytest.mark.parametrize("item", PERMISSIONS, ids=lambda item: f"{item.api} {item.operation} {item.object}")
def test_a_write_needs_a_member_and_a_read_needs_a_reader(item: Permission) -> None:
    method = item.request.split(" ")[0]
    if item.rules:
        assert item.role == ("reader" if method == "GET" else "member")
    assert f"`{item.request}`" in iam_files()["openstack.md"]
