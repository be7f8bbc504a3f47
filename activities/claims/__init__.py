"""What the claims area observes, and its passes that are one activity."""

from activities.claims.area import ACTIVITIES, ClaimsArea

__all__ = ["ACTIVITIES", "ClaimsArea"]
