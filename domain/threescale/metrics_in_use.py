"""Metrics and methods that 3scale refuses to delete, because a gateway's latest configuration uses them.

A sync deletes them last, so that a refused deletion prevents no other call. Until the deletion succeeds the object is
Failed, but referrers and promotions treat it as usable. A Backend with this failure makes its Products deploy again
(`releasing`).
"""

from __future__ import annotations

from collections.abc import Mapping

from domain.refusal import Refusal
from domain.threescale.conditions import FAILED, INVALID
from domain.threescale.digests import digest, remembering
from domain.threescale.observed import is_true
from domain.threescale.resources import Backend
from domain.threescale.resources.shared import Conditions, Digests

IN_USE = "used by the latest gateway configuration and cannot be deleted"


def stays_usable(conditions: Conditions) -> bool:
    failed = next((each for each in conditions if each.type == FAILED and each.status == "True"), None)
    return failed is not None and IN_USE in (failed.message or "") and not is_true(conditions, INVALID)


def releasing(backend: Backend, before: Digests, desired: Digests, refused: Mapping[str, Refusal]) -> dict[str, object]:
    """Status fields with a temporary gateway digest, which makes the Backend's Products deploy without the metrics that
    3scale refused to delete. Empty if any other call was refused.
    """
    if not all(IN_USE in each.message for each in refused.values()):
        return {}
    gateway = digest(desired.gateway, "lets go")
    return remembering(backend, before.model_copy(update={"synced": None, "gateway": gateway}))
