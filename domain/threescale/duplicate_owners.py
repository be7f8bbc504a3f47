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

    Two objects may have adopted the same entry. If one of them is deleted, the entry stays for the other.
    """

    metadata: ObjectMeta
    id: int


def holders_of(resource: RemoteResource, url: str, others: Iterable[RemoteResource]) -> tuple[Holder, ...]:
    # An id that is only in an annotation counts only if no older object has this id. Otherwise the object is a copy.
    known = [(each, known_at(url, host_of(each), remembered_id(each))) for each in (resource, *others)]
    by_age = sorted(known, key=lambda each: seniority(each[0].metadata))
    oldest = {id_: each.metadata.uid for each, id_ in reversed(by_age)}
    having = [(each, id_) for each, id_ in known if id_ and (each.remote_id or oldest[id_] == each.metadata.uid)]
    uid = resource.metadata.uid
    return tuple(Holder(metadata=each.metadata, id=id_) for each, id_ in having if each.metadata.uid != uid)


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
