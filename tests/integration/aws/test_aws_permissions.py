"""The declared permissions are the calls: read from the code, and heard at the wire."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from aws_lab import REGION, Lab, admin_user, region_init, support_role
from botocore.session import Session

from activities import aws
from activities.aws.permissions import Role, needed, permitted
from domain.accounts.actions import CleanGlobal, CleanRegion, DeleteIdentities, OpenSupportCase, RotateKeys
from domain.accounts.constants import OPERATOR_NAMESPACE

SERVICES = ("ec2", "iam", "organizations", "route53", "s3", "sts", "support")
# Names that several services have: which one our code means.
MEANT = {"tag_resource": "organizations", "list_tags_for_resource": "organizations"}


def operations() -> dict[str, list[str]]:
    """Every Python name of an operation (and its API name) of the services we use."""
    from botocore import xform_name

    session = Session()
    found: dict[str, list[str]] = {}
    for service in SERVICES:
        for name in session.get_service_model(service).operation_names:
            found.setdefault(xform_name(name), []).append(f"{service}:{name}")
    return found


def names_called() -> Iterator[str]:
    """What the package calls on clients: method names, and names given to paginators."""
    for file in Path(aws.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr == "get_paginator":
                    (argument,) = node.args
                    assert isinstance(argument, ast.Constant)
                    yield str(argument.value)
                elif isinstance(node.func.value, (ast.Name, ast.Call)):
                    yield node.func.attr


def test_every_call_in_the_code_is_declared_and_every_declaration_is_called() -> None:
    known = operations()
    own = {"get_paginator"}
    called: set[str] = set()
    for name in set(names_called()) - own:
        candidates = known.get(name, [])
        if len(candidates) > 1:
            candidates = [item for item in candidates if item.startswith(f"{MEANT[name]}:")]
        for operation in candidates:
            called |= needed(operation)
    assert called == permitted(Role.PAYER) | permitted(Role.MEMBER)


@pytest.mark.integration
def test_who_calls_what_is_as_declared(lab: Lab) -> None:
    account_id, name = lab.account()
    owner = lab.owner(name)
    lab.run(lab.activities.ensure_support_role, support_role(account_id, name))
    lab.run(lab.activities.ensure_admin_user, admin_user(account_id, name, owner))
    lab.run(lab.activities.initialize_region, region_init(account_id, name, search=True))
    lab.run(lab.activities.open_support_case, OpenSupportCase(account_id=account_id, name=name, search=True))
    lab.run(lab.activities.clean_region, CleanRegion(account_id=account_id, region=REGION))
    lab.run(lab.activities.clean_global, CleanGlobal(account_id=account_id, region=REGION))
    lab.run(
        lab.activities.rotate_keys,
        RotateKeys(account_id=account_id, owner=owner, iam_user_id=name[-6:], secret=f"{name}-secret"),
    )
    lab.run(
        lab.activities.delete_identities,
        DeleteIdentities(account_id=account_id, name=name, namespace=OPERATOR_NAMESPACE),
    )
    heard: dict[Role, set[str]] = {Role.PAYER: set(), Role.MEMBER: set()}
    for count in lab.emulator.ledger().counts:
        role = Role.MEMBER if count.account == account_id else Role.PAYER
        heard[role] |= needed(f"{count.service}:{count.action}")
    for role, actions in heard.items():
        assert actions <= permitted(role)
    assert "iam:CreateUser" in heard[Role.MEMBER]
    assert "organizations:CreateAccount" in heard[Role.PAYER]
