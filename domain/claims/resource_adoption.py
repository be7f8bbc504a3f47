"""Whether a handle adopts an object that exists already under a resource's name.

It does, unless the object's annotation names another existing handle; then the object is neither shown nor deleted.
"""

from __future__ import annotations

from domain.claims.domain_names import DomainNames
from domain.claims.evaluator_interface import Fault
from domain.claims.json_objects import JsonObject, text_at


def owner_of(names: DomainNames, obj: JsonObject) -> str:
    return text_at(obj, "metadata", "annotations", names.resource_handle_name_annotation)


def other_owner(names: DomainNames, handle: JsonObject, obj: JsonObject) -> str:
    """The other handle in the annotation; while that handle exists, it owns the object."""
    owner = owner_of(names, obj)
    return "" if owner == text_at(handle, "metadata", "name") else owner


def owned_by_another(what: str, owner: str) -> Fault:
    return Fault(reason="ResourceOwned", message=f"{what} belongs to another ResourceHandle, {owner}")
