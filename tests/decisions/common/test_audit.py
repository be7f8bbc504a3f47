"""What the audit of AWS accounts finds, as tables."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from domain.accounts.organization import MemberAccount
from domain.accounts.resources import Account
from starters.cli.audits import Finding, audits, found_twice
from starters.cli.audits.accounts import doubled, unrecorded, without_account, without_owner

ID, OTHER = "111122223333", "444455556666"
NAME = "osd-creds-mgmt-h5n8vq"


def account(name: str = NAME, id_: str = ID, **spec: object) -> Account:
    metadata = {"name": name, "namespace": "ns"}
    return Account.model_validate({"metadata": metadata, "spec": {"awsAccountID": id_, **spec}})


def member(id_: str = ID, name: str = NAME, state: str = "ACTIVE") -> MemberAccount:
    return MemberAccount(id=id_, name=name, email="", state=state)


def subjects(findings: Iterable[Finding]) -> list[str]:
    return [finding.subject for finding in findings]


@pytest.mark.parametrize(
    ("accounts", "members", "creating", "found"),
    [
        ([account()], [member()], set(), False),
        ([], [member()], set(), True),
        ([account("osd-creds-mgmt-other")], [member()], set(), False),  # adopted under another name
        ([account(id_="")], [member()], set(), False),  # about to be adopted
        ([], [member()], {NAME}, False),  # still being made
        ([], [member(state="SUSPENDED")], set(), False),
        ([], [member(name="someone-elses")], set(), False),
        ([], [member(name="osd-creds-mgmtx")], set(), False),
        ([account(id_=OTHER)], [member()], set(), True),
    ],
)
def test_an_active_account_of_our_naming_needs_an_owner(
    accounts: list[Account], members: list[MemberAccount], creating: set[str], found: bool
) -> None:
    assert unrecorded(accounts, members, creating) == (members if found else [])


def test_only_our_own_and_untagged_accounts_are_findings_and_others_are_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    mine, untagged = member(), member(OTHER, "osd-creds-mgmt-untagd")
    theirs = {member(f"{index:012}", f"osd-creds-mgmt-{index:06}"): "shard-2" for index in range(3)}
    found = list(without_owner({mine: "shard-1", untagged: None, **theirs}, "shard-1"))
    assert subjects(found) == [f"AWS account {ID} ({NAME})", f"AWS account {OTHER} (osd-creds-mgmt-untagd)"]
    assert "untagged" in found[1].problem
    output = capsys.readouterr()
    assert output.out == ""
    assert "3 of shard-2" in output.err
    assert len(output.err.splitlines()) == 1


def test_an_audit_without_foreign_accounts_does_not_mention_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert subjects(without_owner({member(): ""}, "")) == [f"AWS account {ID} ({NAME})"]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("accounts", "members", "found"),
    [
        ([account()], [member()], False),
        ([account()], [], True),
        ([account()], [member(state="PENDING_CLOSURE")], True),
        ([account(id_="")], [], False),
        ([account(byoc=True)], [], False),
        ([account(manualSTSMode=True)], [], False),
    ],
)
def test_a_recorded_account_has_to_be_in_the_organization(
    accounts: list[Account], members: list[MemberAccount], found: bool
) -> None:
    assert subjects(without_account(accounts, members)) == ([f"Account ns/{NAME}"] if found else [])


def test_two_accounts_of_one_name_are_found() -> None:
    (finding,) = doubled([account()], [member(), member(OTHER)])
    assert ID in finding.problem
    assert OTHER in finding.problem
    assert not list(doubled([account()], [member(), member(OTHER, state="SUSPENDED")]))


def test_one_account_with_two_owners_is_found() -> None:
    (finding,) = doubled([account("a"), account("b")], [member()])
    assert (finding.subject, finding.problem) == (f"AWS account {ID}", "recorded by several Accounts: ns/a, ns/b")
    assert not list(doubled([account("a", ""), account("b", "")], []))


def test_an_area_joins_by_its_module() -> None:
    assert "accounts" in audits()


async def test_only_what_two_looks_find_is_believed_and_nothing_found_needs_no_second() -> None:
    def finding(name: str) -> Finding:
        return Finding(area="accounts", subject=name, problem="p", advice="a")

    looks = [[finding("late"), finding("lost")], [finding("lost"), finding("new")], []]

    async def look() -> list[Finding]:
        return looks.pop(0)

    assert await found_twice(look, 0) == [finding("lost")]
    assert await found_twice(look, 60) == []
