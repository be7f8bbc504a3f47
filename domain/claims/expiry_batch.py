"""Which expired claims the binder deletes in a batch. Any other claim is deleted by its own workflow."""

from __future__ import annotations

from datetime import datetime

from domain.claims.domain_names import DomainNames
from domain.claims.ignore_label import is_left_alone
from domain.claims.json_objects import JsonObject, text_at
from domain.claims.references import handle_name, is_detached
from domain.claims.timestamps import end_of_handle, moment_at


def ends_in_batch(names: DomainNames, claim: JsonObject, handle: JsonObject) -> bool:
    return may_end(names, claim, handle) and agreed_end(claim, handle) is not None


def may_end(names: DomainNames, claim: JsonObject, handle: JsonObject) -> bool:
    holds = handle_name(claim) == text_at(handle, "metadata", "name") and not is_detached(claim)
    return holds and not any(is_left_alone(names, each) for each in (claim, handle))


def agreed_end(claim: JsonObject | None, handle: JsonObject | None) -> datetime | None:
    """The common end of claim and handle; None if their specs and the claim's status do not agree."""
    if claim is None or handle is None:
        return None
    end, requested = end_of_handle(handle), text_at(claim, "spec", "lifespan", "end")
    shown = moment_at(claim, "status", "lifespan", "end")
    wanted = moment_at(claim, "spec", "lifespan", "end") if requested else end
    return end if end == shown == wanted else None
