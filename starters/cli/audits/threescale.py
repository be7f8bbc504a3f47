"""The 3scale audit: compares each tenant's lists with the objects, in both directions. Read-only.

Each tenant is read twice, and only findings of both reads are reported. A read lists every kind that has objects, and
every kind whose entries carry our annotation `managed_by`. Check a finding before you act: another cluster may manage
the same tenant.
"""

from __future__ import annotations

import base64
import binascii
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from activities.threescale.call_limits import Guard
from activities.threescale.client import Connections, Tenant
from activities.threescale.errors import of_known_shape
from domain.reading import read_all
from domain.resource import CustomResource
from domain.threescale.drift import (
    COMPARED,
    MARKED,
    Lists,
    differences,
    lists_for,
    with_list,
    without_owner,
)
from domain.threescale.normalize import with_port
from domain.threescale.provider_account import ADDRESS_KEY, DEFAULT_SECRET, TOKEN_KEY, tenant_secret
from domain.threescale.resources import DeveloperAccount
from engine.errors import Absent, ApiError, Denied
from engine.kube import SECRET
from engine.kube.json import mapping, text
from starters.cli.audits import Finding, found_twice
from starters.cli.output import warn
from starters.cli.session import Session

AREA = "threescale"
# Seconds between the two reads of the lists, more than a pass takes.
APART_SECONDS = 5.0
_TIMEOUT_SECONDS = 30.0
_CALLS_AT_ONCE = 2


class Account(NamedTuple):
    url: str
    token: str


async def audit(session: Session, *, thorough: bool) -> list[Finding]:
    async with Connections(_TIMEOUT_SECONDS) as connections:

        async def look() -> Iterable[Finding]:
            return await observe(session, connections)

        return await found_twice(look, APART_SECONDS)


async def observe(session: Session, connections: Connections) -> list[Finding]:
    by_tenant, found = await _tenants(session)
    for account, objects in by_tenant.items():
        tenant = Tenant(connections.http, account.url, account.token, Guard(account.url, _CALLS_AT_ONCE))
        try:
            lists = await _lists(tenant, account.url, objects)
        except ApiError as error:
            found.append(_finding(f"tenant {account.url}", f"cannot be read: {error.message}", "correct the cause"))
            continue
        found += findings(account.url, objects, lists)
    return found


def findings(url: str, objects: list[CustomResource], lists: Lists) -> list[Finding]:
    drifted = [
        _finding(_path(each.resource), each.problem, "`perdure retry` corrects it, unless 3scale refuses")
        for each in differences(objects, lists)
    ]
    owned = [
        _finding(
            f"{what} of {url}",
            "carries the operator's mark, and no object manages it",
            "delete it, or create its object",
        )
        for what in without_owner(objects, lists)
    ]
    return drifted + owned


async def _lists(tenant: Tenant, url: str, objects: list[CustomResource]) -> Lists:
    lists: Lists = {}
    for read in lists_for([*objects, *(model() for model in MARKED)]):
        answer = await tenant.read(read)
        with of_known_shape(read.named(url)):
            lists = with_list(lists, read, answer)
    return lists


async def _tenants(session: Session) -> tuple[dict[Account, list[CustomResource]], list[Finding]]:
    """The objects by tenant, and findings of unreadable objects."""
    objects, found = await _objects(session)
    accounts: dict[tuple[str, str], Account | None] = {}
    named = {
        (each.metadata.namespace, each.metadata.name): each for each in objects if isinstance(each, DeveloperAccount)
    }
    by_tenant: defaultdict[Account, list[CustomResource]] = defaultdict(list)
    addresses: dict[str, Account] = {}
    for each in objects:
        place = (each.metadata.namespace, tenant_secret(each, named) or DEFAULT_SECRET)
        if place not in accounts:
            accounts[place] = await _account(session, *place)
        account = accounts[place]
        if account is not None:
            by_tenant[addresses.setdefault(with_port(account.url).rstrip("/"), account)].append(each)
    return dict(by_tenant), found


async def _objects(session: Session) -> tuple[list[CustomResource], list[Finding]]:
    objects: list[CustomResource] = []
    found: list[Finding] = []
    for model in COMPARED:
        readable, malformed = read_all(model, (await session.kube.list(model.kind_of)).items)
        objects += readable
        found += [
            _finding(
                each.key.path,
                f"cannot be read: {each.problem}",
                "correct the object; until then its entry in 3scale may be reported as managed by no object",
            )
            for each in malformed
        ]
    return objects, found


async def _account(session: Session, namespace: str, name: str) -> Account | None:
    try:
        secret = await session.kube.get(SECRET, namespace, name)
    except (Absent, Denied) as error:
        warn(f"skipped: objects whose tenant is in Secret {namespace}/{name}: {error.message}")
        return None
    url, token = (_value(mapping(secret, "data"), key) for key in (ADDRESS_KEY, TOKEN_KEY))
    if not url or not token:
        warn(f"skipped: objects whose tenant is in Secret {namespace}/{name}: no {ADDRESS_KEY} or no {TOKEN_KEY}")
        return None
    return Account(url.strip(), token)


def _value(held: Mapping[str, object], key: str) -> str:
    try:
        return base64.b64decode(text(held, key)).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _path(each: CustomResource) -> str:
    return f"{each.kind_of.name} {each.metadata.namespace}/{each.metadata.name}"


def _finding(subject: str, problem: str, advice: str) -> Finding:
    return Finding(area=AREA, subject=subject, problem=problem, advice=advice)
