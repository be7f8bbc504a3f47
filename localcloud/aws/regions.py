"""Which regions an account can use, and what became of the ones it opted in to or out of.

Regions that are enabled by default need nothing; the others are DISABLED until EnableRegion, and ENABLING for a
while after it (https://docs.aws.amazon.com/accounts/latest/reference/manage-acct-regions.html). The choices are
kept in moto's backend of the account API, so that they are saved with it; EC2's DescribeRegions and the check of
every regional call read them here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import cast

from moto.account.models import AccountBackend, account_backends

from localcloud.aws import runtime


class OptStatus(StrEnum):
    """RegionOptStatus of the account API."""

    ENABLED = "ENABLED"
    ENABLING = "ENABLING"
    DISABLING = "DISABLING"
    DISABLED = "DISABLED"
    ENABLED_BY_DEFAULT = "ENABLED_BY_DEFAULT"


@dataclass(frozen=True)
class Choice:
    """The last change of an opt-in region: wanted on or off, asked for and done at instants of the emulator's clock."""

    enable: bool
    done_at: float
    asked_at: float = 0


def known() -> tuple[str, ...]:
    """All regions there are."""
    settings = runtime.config()
    return tuple(dict.fromkeys((*settings.regions, *settings.opt_in_regions)))


def status(account_id: str, region: str) -> OptStatus:
    """Where an account stands with a region.

    Raises:
        KeyError: there is no such region.
    """
    settings = runtime.config()
    if region in settings.regions:
        return OptStatus.ENABLED_BY_DEFAULT
    if region not in settings.opt_in_regions:
        raise KeyError(region)
    choice = choices(account_id).get(region)
    if choice is None:
        return OptStatus.DISABLED
    if runtime.clock.now() < choice.done_at:
        return OptStatus.ENABLING if choice.enable else OptStatus.DISABLING
    return OptStatus.ENABLED if choice.enable else OptStatus.DISABLED


def is_enabled(account_id: str, region: str) -> bool:
    """Whether calls of that account in that region are answered."""
    if region in runtime.config().regions:
        return True
    try:
        return status(account_id, region) in (OptStatus.ENABLED, OptStatus.DISABLING)
    except KeyError:
        return False


def choices(account_id: str) -> dict[str, Choice]:
    """The opt-in choices of an account, to be read and changed."""
    regional = account_backends[account_id]
    backend: AccountBackend = dict.get(regional, "aws") or regional["aws"]
    return cast(dict[str, Choice], backend.__dict__.setdefault("region_choices", {}))
