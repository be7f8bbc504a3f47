"""A claim's Secret. An existing Secret is written or deleted only if its annotation has the claim's uid.

There are two exceptions. The replaced operator wrote no annotation: such a Secret is recognised by its content. In a
restored cluster, claims have new uids: a Secret whose annotation names no existing claim may be written, and is deleted
if its content shows that it is the claim's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container, Mapping

from activities.aws.admin_key_secret import ACCESS_KEY_ID, known_ids
from domain.accounts import ACCOUNT, ACCOUNT_CLAIM
from domain.accounts.constants import (
    HOLDER_ANNOTATION,
    OPERATOR_NAMESPACE,
    PAYER_SECRET,
    SECRET_NOT_OURS,
    SECRET_OF_THE_OPERATOR,
)
from domain.accounts.naming import secret_of
from domain.accounts.resources import Account
from domain.identity import Key
from engine.errors import Absent, Conflict, Denied, Invalid
from engine.kube import SECRET, JsonObject, KubeApi
from engine.kube.json import mapping, text
from engine.kube.secrets import secret_content

KEY_FIELDS = ("aws_access_key_id", "aws_secret_access_key")
ROLE_FIELD = "role_arn"  # the entry that Perdure writes into the Secret of a fleet manager's claim


async def put_secret(
    kube: KubeApi, claim: Key, name: str, content: Mapping[str, object], key_ids: Container[str] = ()
) -> None:
    """Create the Secret with these entries, or update it; an entry whose value is None is removed. The Secret's
    annotation gets the claim's uid.

    An existing Secret without the annotation is the claim's if it has exactly these entries or one of the keys
    `key_ids`. A Secret whose annotation names no existing claim is taken over.

    Raises:
        Denied: the Secret belongs to the payer, an Account or another owner.
    """
    if whose := await _operators_own(kube, claim.namespace, name):
        message = (
            f"Secret {claim.namespace}/{name} is {whose}: it is not overwritten. Name another Secret in the claim."
        )
        raise Denied(message, code=SECRET_OF_THE_OPERATOR)
    metadata: JsonObject = {"name": name, "annotations": {HOLDER_ANNOTATION: claim.uid}}
    new = {field: value for field, value in content.items() if value is not None}
    try:
        await kube.create(SECRET, {"metadata": metadata, "type": "Opaque", "data": new}, claim.namespace)
    except Conflict:
        present = await kube.get(SECRET, claim.namespace, name)
        data, holder = mapping(present, "data"), _holder_of(present)
        recognised = bool(holder) or data == new or _holds_key(present, key_ids)
        if not recognised or await _another_claims(kube, claim, present):
            message = (
                f"Secret {claim.namespace}/{name} exists, and this claim did not create it: it is neither changed nor "
                "deleted. Name another Secret in the claim, or delete this one."
            )
            raise Denied(message, code=SECRET_NOT_OURS) from None
        if holder != claim.uid or any(data.get(field) != value for field, value in content.items()):
            version = text(present, "metadata", "resourceVersion")
            patch: JsonObject = {"metadata": metadata, "data": dict(content)}
            await kube.patch(SECRET, claim.namespace, name, patch, resource_version=version)


async def delete_secret(
    kube: KubeApi, claim: Key, name: str, key_ids: Container[str] = (), account_id: str = ""
) -> None:
    """Delete the claim's Secret if it holds only what Perdure writes: a key, or the ARN of a role.

    A Secret whose annotation names no existing claim is this claim's if the key is one of `key_ids`, or the role
    belongs to the account `account_id`.

    Raises:
        Conflict: the Secret was written after it was read.
    """
    with contextlib.suppress(Absent):
        present = await kube.get(SECRET, claim.namespace, name)
        if _holder_of(present) == claim.uid:
            its = set(mapping(present, "data")) in (set(KEY_FIELDS), {ROLE_FIELD})
        else:
            held = _holds_key(present, key_ids) or _holds_role(present, account_id)
            its = held and not await _another_claims(kube, claim, present)
        if not its or await _operators_own(kube, claim.namespace, name):
            return
        meta = mapping(present, "metadata")
        uid, version = text(meta, "uid"), text(meta, "resourceVersion")
        await kube.delete(SECRET, claim.namespace, name, uid=uid, resource_version=version)


async def key_ids_of(kube: KubeApi, account: Account) -> frozenset[str]:
    """The ids of the account's present key and its latest former keys; empty if its Secret does not exist."""
    with contextlib.suppress(Absent):
        name = account.spec.iam_user_secret or secret_of(account.metadata.name)
        return known_ids(await kube.get(SECRET, OPERATOR_NAMESPACE, name))
    return frozenset()


async def copy_key(kube: KubeApi, claim: Key, name: str, source: str) -> None:
    """Copy the key from the account's Secret `source`. Raises Invalid if that key is incomplete, because it would
    replace a working key.
    """
    secret = await kube.get(SECRET, OPERATOR_NAMESPACE, source)
    key = {field: mapping(secret, "data").get(field) for field in KEY_FIELDS}
    if not all(key.values()):
        where = f"Secret {text(secret, 'metadata', 'namespace')}/{text(secret, 'metadata', 'name')}"
        raise Invalid(f"{where} needs {' and '.join(KEY_FIELDS)}: no key is handed over", code="KeyIncomplete")
    await put_secret(kube, claim, name, key, known_ids(secret))


async def _operators_own(kube: KubeApi, namespace: str, name: str) -> str:
    """Whose Secret this is, if the payer or an Account owns it. Empty for any other Secret, which a claim may use."""
    if namespace != OPERATOR_NAMESPACE:
        return ""
    if name == PAYER_SECRET:
        return "the payer's"
    for each in (await kube.list(ACCOUNT, OPERATOR_NAMESPACE)).items:
        account = text(each, "metadata", "name")
        if name in {secret_of(account), text(each, "spec", "iamUserSecret")}:
            return f"Account {account}'s own"
    return ""


async def _another_claims(kube: KubeApi, claim: Key, secret: JsonObject) -> bool:
    holder = _holder_of(secret)
    if holder in {"", claim.uid}:
        return False
    claims = (await kube.list(ACCOUNT_CLAIM, claim.namespace)).items
    return holder in {text(each, "metadata", "uid") for each in claims}


def _holder_of(secret: JsonObject) -> str:
    return text(secret, "metadata", "annotations", HOLDER_ANNOTATION)


def _holds_key(secret: JsonObject, key_ids: Container[str]) -> bool:
    data = mapping(secret, "data")
    return set(data) == set(KEY_FIELDS) and secret_content(secret).get(ACCESS_KEY_ID, "") in key_ids


def _holds_role(secret: JsonObject, account_id: str) -> bool:
    there = set(mapping(secret, "data")) == {ROLE_FIELD}
    return bool(account_id) and there and f"::{account_id}:" in secret_content(secret).get(ROLE_FIELD, "")
