"""The Secret that holds an account's admin key: `<account>-secret`, owned by the Account.

Its annotations record the workflow id of the last rotation, and the ids of former keys. A claim's outdated copy is
recognised by these ids.
"""

from __future__ import annotations

from collections.abc import Mapping

from domain.identity import Key, all_kinds
from domain.model import Model
from engine.errors import Absent, Conflict
from engine.kube import SECRET, BlockingKube
from engine.kube.json import mapping, sequence, text
from engine.kube.secrets import secret_content, secret_data

ROTATED_FOR = "perdure.dev/rotated-for"
FORMER_KEYS = "perdure.dev/former-keys"
MOST_FORMER_KEYS = 5

USER_NAME = "aws_user_name"
ACCESS_KEY_ID = "aws_access_key_id"
SECRET_ACCESS_KEY = "aws_secret_access_key"  # noqa: S105 - a name


class KeySecret(Model):
    user_name: str
    access_key_id: str
    complete: bool
    owner_uids: tuple[str, ...]
    rotated_for: str
    former_keys: tuple[str, ...] = ()
    resource_version: str

    def foreign_to(self, owner: Key, user: str) -> bool:
        """Whether the Secret is not this Account's, according to its ownerReferences or, without any, to the IAM user
        in it.
        """
        return owner.uid not in self.owner_uids if self.owner_uids else self.user_name != user


def read(kube: BlockingKube, owner: Key, name: str) -> KeySecret | None:
    try:
        found = kube.get(SECRET, owner.namespace, name)
    except Absent:
        return None
    return known(found)


def write(
    kube: BlockingKube,
    owner: Key,
    name: str,
    key: Mapping[str, str],
    *,
    before: KeySecret | None,
    rotated_for: str = "",
) -> None:
    """Raises Conflict if the Secret has changed since it was read, or belongs to another object."""
    if before is not None and before.foreign_to(owner, key.get(USER_NAME, "")):
        raise foreign(owner, name)
    metadata: dict[str, object] = {"name": name, "ownerReferences": [owner_reference(owner)]}
    annotations = {ROTATED_FOR: rotated_for} if rotated_for else {}
    if before is not None and before.access_key_id not in ("", key.get(ACCESS_KEY_ID)):
        former = [*before.former_keys, before.access_key_id][-MOST_FORMER_KEYS:]
        annotations[FORMER_KEYS] = ",".join(former)
    if annotations:
        metadata["annotations"] = annotations
    content = secret_data(key)
    if before is None:
        kube.create(SECRET, {"metadata": metadata, "type": "Opaque", "data": content}, owner.namespace)
        return
    patch = {"metadata": metadata, "data": content}
    kube.patch(SECRET, owner.namespace, name, patch, resource_version=before.resource_version)


def foreign(owner: Key, name: str) -> Conflict:
    return Conflict(
        f"Secret {owner.namespace}/{name} does not belong to {owner.path} (uid {owner.uid}), but to an earlier object "
        "of that name or to an unrelated object. It is not changed; delete the Secret to continue.",
        code="ForeignSecret",
    )


def known(found: Mapping[str, object]) -> KeySecret:
    content = secret_content(dict(found))
    annotations = mapping(found, "metadata", "annotations")
    return KeySecret(
        user_name=content.get(USER_NAME, ""),
        access_key_id=content.get(ACCESS_KEY_ID, ""),
        complete=all(content.get(entry) for entry in (USER_NAME, ACCESS_KEY_ID, SECRET_ACCESS_KEY)),
        owner_uids=tuple(text(each, "uid") for each in sequence(found, "metadata", "ownerReferences")),
        rotated_for=text(annotations, ROTATED_FOR),
        former_keys=tuple(each for each in text(annotations, FORMER_KEYS).split(",") if each),
        resource_version=text(found, "metadata", "resourceVersion"),
    )


def known_ids(secret: Mapping[str, object]) -> frozenset[str]:
    its = known(secret)
    return frozenset({its.access_key_id, *its.former_keys} - {""})


def owner_reference(owner: Key) -> dict[str, object]:
    return {
        "apiVersion": all_kinds()[owner.kind].api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
