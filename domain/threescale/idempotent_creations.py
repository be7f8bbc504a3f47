"""Creations that are not made twice, even if an answer is lost or the process crashes.

Before a creation is repeated, 3scale is searched for the object's natural key. For accounts, users, applications,
documents and policies, an annotation records the creation before its call, and stays until the object is in sync. When
an object with this annotation is deleted, the result of the recorded creation is searched for and deleted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from domain.resource import ObjectMeta
from domain.schema import Json, JsonObject
from domain.threescale.calls import Read, Resource, Write
from domain.threescale.remote_state import LEAVING, answers_of
from domain.writes import JsonPatch

# The natural key of a creation with an unknown result, as JSON.
CREATING = "perdure.dev/3scale-creating"
# A field of that JSON: ids of entries that match the key but existed before or belong to other objects.
OTHERS = "others"
_PARENT = "of"  # a field of that JSON: the id of the parent, such as a user's account


def creating(meta: ObjectMeta, key: Mapping[str, Json], others: Iterable[int] = (), parent: int = 0) -> JsonPatch:
    listed = sorted(set(others))
    more = {**({OTHERS: listed} if listed else {}), **({_PARENT: parent} if parent else {})}
    noted = json.dumps({**key, **more}, sort_keys=True)
    return {} if meta.annotations.get(CREATING) == noted else {"metadata": {"annotations": {CREATING: noted}}}


def begun_no_more(meta: ObjectMeta) -> JsonPatch:
    return {"metadata": {"annotations": {CREATING: None}}} if CREATING in meta.annotations else {}


def created(meta: ObjectMeta) -> dict[str, Json]:
    try:
        noted = json.loads(meta.annotations.get(CREATING, "{}"))
    except ValueError:
        return {}
    return noted if isinstance(noted, dict) else {}


def parent_of_creation(meta: ObjectMeta) -> int:
    parent = created(meta).get(_PARENT)
    return parent if isinstance(parent, int) else 0


def search_for(write: Write) -> Read:
    """The search for the result of an earlier attempt. An account is found by its admin's name."""
    if write.resource is Resource.ACCOUNT:
        query = {"username": str(write.key["username"])}
        return Read(resource=write.resource, path="accounts/find", query=query)
    if write.resource is Resource.TENANT:
        return Read(resource=Resource.ACCOUNT, path="accounts", paged=True)
    return Read(resource=write.resource, path=write.path, paged=True)


def made_before(write: Write, answer: object) -> JsonObject | None:
    """The lost answer to an earlier creation, rebuilt from the `answer` to the search; None if nothing was created."""
    is_account, is_tenant = write.resource is Resource.ACCOUNT, write.resource is Resource.TENANT
    key = {"org_name": write.fields.get("org_name")} if is_account else write.key
    listed = answers_of(search_for(write).resource.value, [answer] if is_account and answer is not None else answer)
    staying = (each for each in listed if not is_tenant or each.get("state") != LEAVING)
    made = next((each for each in staying if _bears(each, key) and _is_made_by(write, each)), None)
    if made is None:
        return None
    return {write.resource.value: {"account": made} if is_tenant else made}


def _is_made_by(write: Write, entry: JsonObject) -> bool:
    """Whether the entry has our mark and belongs to no other object."""
    sent, there = write.fields.get("annotations"), entry.get("annotations")
    marked = not isinstance(sent, dict) or (isinstance(there, dict) and sent.items() <= there.items())
    return marked and entry.get("id") not in write.others


def _bears(entry: JsonObject, key: Mapping[str, Json]) -> bool:
    return all(name in entry and str(entry[name]) == str(value) for name, value in key.items())
