"""The regions that an account can use, and its opt-in choices.

Regions that are not enabled by default are DISABLED; after EnableRegion they are ENABLING for a while
(https://docs.aws.amazon.com/accounts/latest/reference/manage-acct-regions.html). The choices are saved with moto's
account backend.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import cast

from moto.account.models import AccountBackend, account_backends

from localcloud.aws import runtime


class OptStatus(StrEnum):
    ENABLED = "ENABLED"
    ENABLING = "ENABLING"
    DISABLING = "DISABLING"
    DISABLED = "DISABLED"
    ENABLED_BY_DEFAULT = "ENABLED_BY_DEFAULT"


@dataclass(frozen=True)
class Choice:
    enable: bool
    done_at: float
    asked_at: float = 0


def known() -> tuple[str, ...]:
    settings = runtime.config()
    return tuple(dict.fromkeys((*settings.regions, *settings.opt_in_regions)))


def status(account_id: str, region: str) -> OptStatus:
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
    if region in runtime.config().regions:
        return True
    try:
        return status(account_id, region) in (OptStatus.ENABLED, OptStatus.DISABLING)
    except KeyError:
        return False


def choices(account_id: str) -> dict[str, Choice]:
    regional = account_backends[account_id]
    backend: AccountBackend = dict.get(regional, "aws") or regional["aws"]
    return cast(dict[str, Choice], backend.__dict__.setdefault("region_choices", {}))
