"""What the account area observes, and its passes that are one activity."""

from activities.accounts.claims import ClaimActivities
from activities.accounts.customers import CustomerActivities
from activities.accounts.fake import FakeActivities
from activities.accounts.fleet import FleetActivities
from activities.accounts.observe import ObserveActivities
from activities.accounts.opt_in import OptInActivities
from activities.accounts.organization import OrganizationActivities
from activities.accounts.pool import PoolActivities
from activities.accounts.validation import ValidationActivities

__all__ = [
    "ClaimActivities",
    "CustomerActivities",
    "FakeActivities",
    "FleetActivities",
    "ObserveActivities",
    "OptInActivities",
    "OrganizationActivities",
    "PoolActivities",
    "ValidationActivities",
]
