"""Objects that claim the same name or entry in 3scale: the oldest has precedence."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from domain.model import Model
from domain.resource import CustomResource, ObjectMeta
from domain.threescale.provider_account import known_at, named_secret, same_tenant
from domain.threescale.remote_ids import host_of, remembered_id
from domain.threescale.resources.shared import RemoteResource

_START = datetime(1, 1, 1, tzinfo=UTC)


class Holder(Model):
    """Another object of the same kind, and the id of the entry that it manages in 3scale.

    Both objects may have adopted the same entry, or one may be a copy of the other, with the same id annotation. If one
    of them is deleted, the entry stays for the other.
    """

    metadata: ObjectMeta
    id: int


def holders_of(resource: CustomResource, url: str, others: Iterable[RemoteResource]) -> tuple[Holder, ...]:
    found = [(each.metadata, known_at(url, host_of(each), remembered_id(each))) for each in others]
    return tuple(Holder(metadata=meta, id=id_) for meta, id_ in found if id_ and meta.uid != resource.metadata.uid)


def shares_tenant(resource: CustomResource, url: str, other: CustomResource, address: str = "") -> bool:
    """Whether `other` belongs to the tenant of `resource`, at `url`. `address` is the tenant address in the Secret of
    `other`; empty if unknown.
    """
    if address := host_of(other) or address:
        return same_tenant(address, url)
    same_secret = named_secret(other) == named_secret(resource)
    return other.metadata.namespace == resource.metadata.namespace and same_secret


def holder_of(id_: int, holders: Iterable[Holder]) -> ObjectMeta | None:
    return next((each.metadata for each in holders if each.id == id_ and not each.metadata.deleting), None)


def elder(meta: ObjectMeta, siblings: Iterable[ObjectMeta]) -> ObjectMeta | None:
    """The oldest object with the same name; None if that is the object of `meta`."""
    others = [each for each in siblings if each.uid != meta.uid and not each.deleting]
    oldest = min([meta, *others], key=seniority)
    return None if oldest.uid == meta.uid else oldest


def seniority(meta: ObjectMeta) -> tuple[datetime, str]:
    return meta.creation_timestamp or _START, meta.uid
