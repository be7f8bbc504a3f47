"""The regions that an account can use. OptInRequired (the account is not ready yet) is retried after 5 s to 1 min."""

from __future__ import annotations

from activities import attempt
from activities.aws.customer_account_access import entered
from activities.aws.error_codes import UNAUTHENTICATED
from activities.aws.session import Member, Sessions
from domain.accounts.actions.region_initialization import ListRegions, Regions
from engine.errors import Denied, Unavailable


def list_regions(sessions: Sessions, action: ListRegions) -> Regions:
    member = entered(sessions, action, settle=attempt.SETTLING)
    try:
        return Regions(regions=usable_regions(member))
    except Denied as error:
        raise (attempt.settling(error) if error.code in UNAUTHENTICATED else error) from error.__cause__


def usable_regions(member: Member) -> tuple[str, ...]:
    """The regions are filtered here too, because not every implementation of EC2's API honours `AllRegions`."""
    regions = member.ec2(member.default_region).describe_regions(AllRegions=False)["Regions"]
    usable = tuple(sorted(item["RegionName"] for item in regions if item.get("OptInStatus") != "not-opted-in"))
    if not usable:
        raise Unavailable(f"EC2 lists no region that account {member} can use; EC2 is asked again", code="NoRegions")
    return usable
