"""The 3scale audit: compares each tenant's lists with the objects, in both directions.

Each tenant is read twice, and only findings of both reads are reported. A read lists every kind that has
objects, and every kind whose entries may have our annotation `managed_by`. Check a finding before you act: another
cluster may manage the same tenant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from activities.threescale.client import Connections
from activities.threescale.errors import of_known_shape
from activities.threescale.secrets import Secrets
from activities.threescale.tenant_addresses import Homes
from activities.threescale.tenant_concurrency import Tenants
from activities.threescale.tenant_members import Members, members_of_tenants, permitted_answer
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
from domain.threescale.provider_account import DEFAULT_SECRET, NoAccount
from engine.errors import ApiError, Denied
from starters.cli.audits import Finding, found_twice
from starters.cli.output import warn
from starters.cli.session import Session

AREA = "threescale"
# Seconds between the two reads of the lists, more than a pass takes.
APART_SECONDS = 5.0
_TIMEOUT_SECONDS = 30.0


async def audit(session: Session, *, thorough: bool) -> list[Finding]:
    verified, unverified = Connections(_TIMEOUT_SECONDS), Connections(_TIMEOUT_SECONDS, verify=False)
    async with verified, unverified:
        tenants = Tenants(verified, unverified)

        async def look() -> Iterable[Finding]:
            return await observe(session, tenants)

        return await found_twice(look, APART_SECONDS)


async def observe(session: Session, tenants: Tenants) -> list[Finding]:
    objects, found = await _objects(session)
    secrets = Secrets(session.kube, Homes())
    all_members, closed = await members_of_tenants(objects, secrets)
    for (namespace, name), why in closed.items():
        if not isinstance(why, NoAccount | Denied):
            raise why
        problem = why.why if isinstance(why, NoAccount) else why.message
        warn(f"skipped: objects whose tenant is in Secret {namespace}/{name or DEFAULT_SECRET}: {problem}")
    for members in all_members:
        url = members.accounts[0].url
        try:
            lists = await _lists(tenants, members, secrets)
        except ApiError as error:
            found.append(_finding(f"tenant {url}", f"cannot be read: {error.message}", "correct the cause"))
            continue
        found += findings(url, members.objects, lists)
    return found


def findings(url: str, objects: Sequence[CustomResource], lists: Lists) -> list[Finding]:
    drifted = [
        _finding(_path(each.resource), each.problem, "`perdure retry` corrects it, unless 3scale refuses")
        for each in differences(objects, lists)
    ]
    owned = [
        _finding(
            f"{what} of {url}",
            "carries the operator's mark, and no object manages it",
            "delete it, or create an object that manages it",
        )
        for what in without_owner(objects, lists)
    ]
    return drifted + owned


async def _lists(tenants: Tenants, members: Members, secrets: Secrets) -> Lists:
    lists: Lists = {}
    for read in lists_for([*members.objects, *(model() for model in MARKED)]):
        answer = await permitted_answer(tenants, members, read, secrets)
        with of_known_shape(read.named(members.accounts[0].url)):
            lists = with_list(lists, read, answer)
    return lists


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


def _path(each: CustomResource) -> str:
    return f"{each.kind_of.name} {each.metadata.namespace}/{each.metadata.name}"


def _finding(subject: str, problem: str, advice: str) -> Finding:
    return Finding(area=AREA, subject=subject, problem=problem, advice=advice)
