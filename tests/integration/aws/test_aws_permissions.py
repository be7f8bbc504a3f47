"""The declared permissions are the calls: read from the code, and heard at the wire."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from aws_lab import REGION, Lab, admin_user, region_init, support_role
from aws_permissions import needed, permitted
from botocore.session import Session

from activities import aws
from activities.aws.permissions import Role
from domain.accounts.actions.account_cleanup import CleanGlobal, CleanRegion
from domain.accounts.actions.iam_identities import DeleteIdentities, RotateKeys
from domain.accounts.actions.support_cases import OpenSupportCase, ResolveSupportCase
from domain.accounts.constants import OPERATOR_NAMESPACE
from domain.instances import permissions as instances
from starters.events import sqs_queues

SERVICES = ("account", "ec2", "iam", "organizations", "route53", "s3", "service-quotas", "sts", "support")
PACKAGE = Path(aws.__path__[0])
# What is called for instances and their events has documents of its own.
OF_INSTANCES = (
    PACKAGE / "event_topology.py",
    PACKAGE / "instances.py",
    PACKAGE / "queue_account_roles.py",
    Path(sqs_queues.__file__),
)
OF_ACCOUNTS = sorted(set(PACKAGE.glob("*.py")) - set(OF_INSTANCES))
# Names that several services have: which one our code means.
MEANT = {
    "create_policy": "iam",
    "delete_policy": "iam",
    "list_policies": "iam",
    "list_tags_for_resource": "organizations",
    "tag_resource": "organizations",
}


def operations(services: Iterable[str]) -> dict[str, list[str]]:
    """Every Python name of an operation (and its API name) of these services."""
    from botocore import xform_name

    session = Session()
    found: dict[str, list[str]] = {}
    for service in services:
        for name in session.get_service_model(service).operation_names:
            found.setdefault(xform_name(name), []).append(f"{service.replace('-', '')}:{name}")
    return found


def names_called(files: Iterable[Path], on: tuple[type[ast.expr], ...]) -> Iterator[str]:
    """What is called on clients: method names, also of those handed on to be called, and names given to paginators."""
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call):
                handed = (each for each in node.args if isinstance(each, ast.Attribute))
                yield from (each.attr for each in handed if isinstance(each.value, on))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr == "get_paginator":
                    (argument,) = node.args
                    assert isinstance(argument, ast.Constant)
                    yield str(argument.value)
                elif isinstance(node.func.value, on):
                    yield node.func.attr


def test_every_call_in_the_code_is_declared_and_every_declaration_is_called() -> None:
    known = operations(SERVICES)
    own = {"get_paginator"}
    called: set[str] = set()
    for name in set(names_called(OF_ACCOUNTS, (ast.Name, ast.Call))) - own:
        candidates = known.get(name, [])
        if len(candidates) > 1:
            candidates = [item for item in candidates if item.startswith(f"{MEANT[name]}:")]
        for operation in candidates:
            called |= needed(operation)
    assert called == {action for role in Role for action in permitted(role)}


def test_every_call_for_instances_is_declared_and_every_declaration_is_called() -> None:
    known = operations(("autoscaling", "ec2", "events", "sqs"))
    names = set(names_called(OF_INSTANCES, (ast.Name, ast.Call, ast.Attribute)))
    called = {operation.removesuffix("Batch") for name in names for operation in known.get(name, ())}
    declared = {
        *instances.CONSUME,
        *instances.BURY,
        *instances.DESCRIBE,
        *instances.ANSWER_HOOKS,
        *instances.TERMINATE,
        *instances.SET_UP_QUEUES,
        *instances.SET_UP_RULES,
        *instances.FIND_RULES,
    }
    # AWS asks for these where something is made with tags.
    assert called == declared - {"sqs:TagQueue", "events:TagResource"}


@pytest.mark.integration
def test_the_calls_of_each_role_are_as_declared(lab: Lab) -> None:
    account_id, name = lab.account()
    owner = lab.owner(name)
    lab.run(lab.activities.ensure_support_role, support_role(account_id, name))
    lab.run(lab.activities.ensure_admin_user, admin_user(account_id, name, owner))
    lab.run(lab.activities.initialize_region, region_init(account_id, name, search=True))
    case = lab.run(lab.activities.open_support_case, OpenSupportCase(account_id=account_id, name=name, search=True))
    lab.run(lab.activities.resolve_support_case, ResolveSupportCase(account_id=account_id, case_id=case.case_id))
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
    received: dict[Role, set[str]] = {Role.PAYER: set(), Role.MEMBER: set()}
    for count in lab.emulator.ledger().counts:
        role = Role.MEMBER if count.account == account_id else Role.PAYER
        received[role] |= needed(f"{count.service}:{count.action}")
    for role, actions in received.items():
        assert actions <= permitted(role)
    assert "iam:CreateUser" in received[Role.MEMBER]
    assert "organizations:CreateAccount" in received[Role.PAYER]
