"""The audit compares AWS accounts, their content and open support cases with the Account objects.

An account belongs to this installation if its name begins with `osd-creds-mgmt-` and its tag `owner` is the ConfigMap's
`shard-name`. An untagged account may belong to any installation: check its finding before you act.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from activities.aws.existing_accounts import owner_of
from activities.aws.organization import list_accounts, list_attempts
from activities.aws.session import Member, Sessions
from domain.accounts import ACCOUNT, ACCOUNT_CLAIM
from domain.accounts.constants import CLAIM_UID_ANNOTATION, NAME_PREFIX
from domain.accounts.iam_and_instance_tags import REGION_INIT_TAG_NAME
from domain.accounts.organization import MemberAccount
from domain.accounts.resources import Account, AccountState
from domain.reading import read_all
from engine.errors import ApiError
from engine.kube import BlockingKube
from engine.kube.json import JsonObject, text
from starters.cli.audits import Finding
from starters.cli.audits.accounts.cases import open_cases, unwanted_cases
from starters.cli.audits.accounts.drift import drifted
from starters.cli.audits.accounts.federated import federated_findings
from starters.cli.audits.accounts.inside import identities, open_requests, strange_identities, unwanted_requests
from starters.cli.output import warn
from starters.cli.session import Session

AREA = "accounts"
# Concurrent calls of a thorough audit: far below EC2's limits per account and region.
_AT_ONCE = 16
# Organizations allows few calls a second for all clients of an organization.
_TAGS_AT_ONCE = 2

_DELETE = "delete the Account, which deletes what Perdure created in the customer's account"
_UNLINK = (
    "if the claim never used this Account, blank the Account's spec.claimLink and remove the Account's annotation "
    f"{CLAIM_UID_ANNOTATION}: the Account becomes free for other claims of the same legal entity"
)
_CORRECT = "correct the claim's spec.accountLink; the claim's release returns this Account in any case"
_CLEAN = (
    "with the Account's legal entity and with the Account's name as spec.accountLink, and delete this AccountClaim: "
    "its release cleans the AWS account"
)
_RELEASE = f"remove the Account's annotation {CLAIM_UID_ANNOTATION}, create the AccountClaim {_CLEAN}"
# Without the annotation, an existing claim of the former claim's name would hold the account as its tenant left it.
_RENAME = (
    f"in one edit of the Account, remove its annotation {CLAIM_UID_ANNOTATION} and set spec.claimLink to a name that "
    f"no AccountClaim has; then create an AccountClaim of this name {_CLEAN}"
)
_ASK = "find out who owns it; close it, or create an Account with its id"


async def audit(session: Session, *, thorough: bool) -> list[Finding]:
    kube = BlockingKube(session.kube, asyncio.get_running_loop())
    observing = session.settings.model_copy(update={"mode": "observe"})
    return await asyncio.to_thread(_audit, Sessions(kube, observing), kube, thorough)


def _audit(sessions: Sessions, kube: BlockingKube, thorough: bool) -> list[Finding]:
    """The Accounts are read before and after AWS, because accounts may be created or closed meanwhile."""
    before, _ = _accounts(kube)
    claimless = _claimless(kube, before)
    members = list_accounts(sessions)
    creating = {attempt.name for attempt in list_attempts(sessions, "IN_PROGRESS")}
    after, found = _accounts(kube)
    orphans = unrecorded(after, members, creating)
    with ThreadPoolExecutor(_TAGS_AT_ONCE) as threads:
        owners = dict(zip(orphans, threads.map(lambda member: owner_of(sessions, member.id), orphans), strict=True))
    found += without_owner(owners, sessions.config().shard_name or "")
    found += doubled(after, members)
    found += without_account(before, members)
    if claimless:  # claims may be created or released meanwhile
        found += [finding for finding in _claimless(kube, after) if finding in claimless]
    found += federated_findings(sessions, kube, thorough=thorough)
    found += _cases(sessions, before, after)
    if thorough:
        found += _look_inside(sessions, after, members)
        found += drifted(sessions, after, AREA)
    return found


def _cases(sessions: Sessions, before: Sequence[Account], after: Sequence[Account]) -> list[Finding]:
    """Open cases for which no Account in `before` or `after` waits. Cases may be opened or resolved in between."""
    try:
        cases = open_cases(sessions.payer())
    except ApiError as error:
        warn(f"support cases were not audited: {error.message}")
        return []
    lingering = list(unwanted_cases(before, cases, AREA))
    return [finding for finding in unwanted_cases(after, cases, AREA) if finding in lingering]


def _accounts(kube: BlockingKube) -> tuple[list[Account], list[Finding]]:
    accounts, malformed = read_all(Account, kube.list(ACCOUNT).items)
    advice = "correct the object; until then its AWS account is reported as one that no Account records"
    unreadable = [
        _finding(f"Account {each.key.namespace}/{each.key.name}", f"cannot be read: {each.problem}", advice)
        for each in malformed
    ]
    return list(accounts), unreadable


def unrecorded(
    accounts: Sequence[Account], members: Sequence[MemberAccount], creating: set[str]
) -> list[MemberAccount]:
    """Active AWS accounts with our name prefix but no Account. Names in `creating` are skipped."""
    recorded = {account.spec.aws_account_id for account in accounts}
    # An Account without an id adopts the AWS account that has its name.
    adopting = {account.metadata.name for account in accounts if not account.spec.aws_account_id}
    return [
        member
        for member in members
        if member.active
        and member.name.startswith(f"{NAME_PREFIX}-")
        and member.id not in recorded
        and member.name not in adopting | creating
    ]


def without_owner(owners: Mapping[MemberAccount, str | None], ours: str) -> Iterable[Finding]:
    """A finding for each AWS account that no Account records; only a warning about those of other installations."""
    others = Counter(owner for owner in owners.values() if owner is not None and owner != ours)
    if others:
        named = sorted((owner or "an installation without shard-name", count) for owner, count in others.items())
        who = ", ".join(f"{count} of {owner}" for owner, count in named)
        warn(f"AWS accounts with tags of other installations were skipped: {who}")
    for member, owner in owners.items():
        if owner in {None, ours}:
            problem = "active, and no Account records it" + (", untagged" if owner is None else "")
            yield _finding(f"AWS account {member.id} ({member.name})", problem, _ASK)


def doubled(accounts: Sequence[Account], members: Sequence[MemberAccount]) -> Iterable[Finding]:
    names = Counter(member.name for member in members if member.active and member.name.startswith(f"{NAME_PREFIX}-"))
    for name in sorted(name for name, count in names.items() if count > 1):
        ids = ", ".join(sorted(member.id for member in members if member.name == name))
        problem, advice = f"several AWS accounts have this name: {ids}", "keep the one that an Account records"
        yield _finding(f"AWS accounts named {name}", problem, advice)
    owners: dict[str, list[str]] = defaultdict(list)
    for account in accounts:
        if account.spec.aws_account_id:
            owners[account.spec.aws_account_id].append(_path(account))
    for id_, paths in sorted(owners.items()):
        if len(paths) > 1:
            problem = f"recorded by several Accounts: {', '.join(sorted(paths))}"
            advice = "keep one of these Accounts; pause the others, delete them, and use `perdure abandon` on them"
            yield _finding(f"AWS account {id_}", problem, advice)


def without_account(accounts: Sequence[Account], members: Sequence[MemberAccount]) -> Iterable[Finding]:
    known = {member.id: member for member in members}
    for account in accounts:
        id_ = account.spec.aws_account_id
        if not id_ or account.spec.byoc or account.spec.manual_sts_mode:
            continue  # not created yet, or the customer's own
        if id_ not in known:
            problem = f"its AWS account {id_} is not in the organization"
        elif not known[id_].active:
            problem = f"its AWS account {id_} is {known[id_].state}"
        else:
            continue
        yield _finding(f"Account {_path(account)}", problem, "delete the Account; `perdure abandon` if that is stuck")


def _claimless(kube: BlockingKube, accounts: Sequence[Account]) -> list[Finding]:
    try:
        claims = kube.list(ACCOUNT_CLAIM).items
    except ApiError as error:
        warn(f"Accounts were not compared with claims: {error.message}")
        return []
    return list(without_claim(accounts, claims))


def without_claim(accounts: Sequence[Account], claims: Iterable[JsonObject]) -> Iterable[Finding]:
    """Accounts whose claim does not exist, for example because its finalizer was removed by hand. Also Accounts whose
    claim names another Account: the replaced operator gave it two, or a tenant edited `spec.accountLink`.
    """
    by_name = {(text(each, "metadata", "namespace"), text(each, "metadata", "name")): each for each in claims}
    links = {(each.metadata.name, each.spec.claim_link_namespace, each.spec.claim_link) for each in accounts}
    for account in accounts:
        meta, name = account.metadata, (account.spec.claim_link_namespace, account.spec.claim_link)
        if not account.spec.claim_link:
            continue
        claim = by_name.get(name)
        link = text(claim or {}, "spec", "accountLink")
        if claim is None:
            which, advice = "which does not exist: nothing releases it", _RELEASE
        elif meta.annotations.get(CLAIM_UID_ANNOTATION) not in (None, text(claim, "metadata", "uid")):
            which, advice = "but records the uid of a former claim: nothing releases it", _RENAME
        elif link in ("", meta.name):
            continue
        elif (link, *name) in links:
            which, advice = f"which has Account {link}, too", _UNLINK
        else:
            which, advice = f"whose spec.accountLink is {link}, which does not name the claim", _CORRECT
        if account.customers and advice != _CORRECT:
            advice = _DELETE
        problem = f"held by AccountClaim {'/'.join(name)}, {which}"
        yield _finding(f"Account {_path(account)}", problem, advice)


def _look_inside(sessions: Sessions, accounts: Sequence[Account], members: Sequence[MemberAccount]) -> list[Finding]:
    active = {member.id for member in members if member.active}
    looked_at = [account for account in accounts if account.spec.aws_account_id in active]
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        found = threads.map(lambda account: _inside(sessions, account), looked_at)
        return [finding for findings in found for finding in findings]


def _inside(sessions: Sessions, account: Account) -> list[Finding]:
    try:
        member = sessions.member(account.spec.aws_account_id, sessions.config().partition)
        answer = member.ec2(member.default_region).describe_regions(AllRegions=False)
        regions = sorted(item["RegionName"] for item in answer["Regions"] if item.get("OptInStatus") != "not-opted-in")
        found = list(strange_identities(account, *identities(member), AREA))
        for region in regions:
            if account.status.state != AccountState.INITIALIZING_REGIONS:
                found += _instances_in(member, account, region)
            found += unwanted_requests(account, region, open_requests(member, region), AREA)
        return found
    except ApiError as error:
        return [_finding(f"Account {_path(account)}", f"cannot be read: {error.message}", "run `perdure why` for it")]


def _instances_in(member: Member, account: Account, region: str) -> Iterable[Finding]:
    pages = (
        member.ec2(region)
        .get_paginator("describe_instances")
        .paginate(
            Filters=[
                {"Name": "tag:Name", "Values": [REGION_INIT_TAG_NAME]},
                {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]},
            ]
        )
    )
    for page in pages:
        for reservation in page["Reservations"]:
            for instance in reservation["Instances"]:
                subject = f"instance {instance['InstanceId']} in {account.spec.aws_account_id}, {region}"
                problem = f"left by the initialisation of {_path(account)}"
                yield _finding(subject, problem, "terminate it: nothing needs it")


def _path(account: Account) -> str:
    return f"{account.metadata.namespace}/{account.metadata.name}"


def _finding(subject: str, problem: str, advice: str) -> Finding:
    return Finding(area=AREA, subject=subject, problem=problem, advice=advice)
