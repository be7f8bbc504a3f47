"""Whether a claim is deleted with its handle.

It is, unless it is detached or names another handle. A claim that names no handle stays if it was created after the
handle's deletion, or in the same second.
"""

from __future__ import annotations

from domain.claims.json_objects import JsonObject, text_at
from domain.claims.marks import handle_name, is_detached
from domain.claims.timestamps import born
from domain.resource import parse_timestamp


def deletes_claim(handle: JsonObject, claim: JsonObject) -> bool:
    if is_detached(claim):
        return False
    named = handle_name(claim)
    if named:
        return named == text_at(handle, "metadata", "name")
    deleted = parse_timestamp(text_at(handle, "metadata", "deletionTimestamp"))
    return deleted is None or born(claim) < deleted
