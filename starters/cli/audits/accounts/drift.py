"""Finds accounts in the wrong OU or with wrong tags, even if the validation's flags are off
(`domain/accounts/account_validation.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from activities.aws.account_moves import misplaced
from activities.aws.organization import list_units, tags_of
from activities.aws.session import Sessions
from domain.accounts.account_validation import ROOT, legal_entity_of, settled
from domain.accounts.aws_account_tags import differing_tags, wanted_tags
from domain.accounts.config import OperatorConfig
from domain.accounts.constants import CONFIG_MAP
from domain.accounts.resources import Account
from engine.errors import ApiError
from starters.cli.audits import Finding


def drifted(sessions: Sessions, accounts: Iterable[Account], area: str) -> Iterator[Finding]:
    config, in_use = sessions.config(), [account for account in accounts if settled(account)]
    if not config.missing("root", "base"):
        yield from _strays(sessions, config, in_use, area)
    if wanted_tags(config):
        for account in in_use:
            yield from _tagged(sessions, config, account, area)


def _strays(sessions: Sessions, config: OperatorConfig, accounts: Sequence[Account], area: str) -> Iterator[Finding]:
    parents = {**list_units(sessions, config.base), ROOT: config.root}
    wanted = {
        account.spec.aws_account_id: parents[legal_entity_of(account)]
        for account in accounts
        if legal_entity_of(account) in parents
    }
    found = misplaced(sessions, wanted)
    for account in accounts:
        id_, entity = account.spec.aws_account_id, legal_entity_of(account)
        if entity not in parents:
            yield _finding(area, account, f"legal entity {entity!r} has no OU under {config.base}", _MOVE)
        elif id_ in found:
            there = found[id_]
            problem = there.message if isinstance(there, ApiError) else f"is in {there} instead of {wanted[id_]}"
            yield _finding(area, account, problem, _MOVE)


def _tagged(sessions: Sessions, config: OperatorConfig, account: Account, area: str) -> Iterator[Finding]:
    try:
        tags = differing_tags(tags_of(sessions, account.spec.aws_account_id), config)
    except ApiError as error:
        yield _finding(area, account, f"its tags cannot be read: {error.message}", "run `perdure why` for it")
        return
    if tags:
        wanted = ", ".join(f"{name}={value}" for name, value in sorted(tags.items()))
        yield _finding(area, account, f"its tags differ from {wanted}", _TAG)


_TAG = f'Perdure corrects them if ConfigMap {CONFIG_MAP} has feature.validation_tag_account: "true"'
_MOVE = f'Perdure corrects this if ConfigMap {CONFIG_MAP} has feature.validation_move_account: "true"'


def _finding(area: str, account: Account, problem: str, advice: str) -> Finding:
    meta = account.metadata
    return Finding(area=area, subject=f"Account {meta.namespace}/{meta.name}", problem=problem, advice=advice)
