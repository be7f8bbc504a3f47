"""An account's key as its claim gets it, whole or not at all; and the Secret with it, which is one claim's."""

from __future__ import annotations

import base64
from typing import Any, cast

import pytest
from account_objects import AWS_ID, NAME, NOW, SUFFIX, account, ago, claim
from memory_kube import MemoryKube
from temporalio.client import Client

from activities.accounts import handover
from activities.accounts.cache import Reader
from activities.accounts.claim_objects import DUMMIES, DeliveryActivities
from activities.accounts.claim_secrets import delete_secret, put_secret
from activities.accounts.handover import HandOver
from activities.aws.admin_key_secret import FORMER_KEYS
from activities.aws.session import Sessions
from domain.accounts import ACCOUNT, ACCOUNT_CLAIM
from domain.accounts.actions.claim_secrets import (
    DeliverCredentials,
    DeliverRole,
    FakeSecret,
    LetSecretsGo,
    RemoveSecret,
)
from domain.accounts.actions.handover import Fulfil, Release, ReleaseAccount
from domain.accounts.constants import (
    CLAIM_UID_ANNOTATION,
    HOLDER_ANNOTATION,
    INPUT_SECRET_FINALIZER,
    OPERATOR_NAMESPACE,
    SECRET_NOT_OURS,
    UNCLEANED,
)
from domain.accounts.force_release import FORCE_RELEASE
from domain.accounts.resources import LegalEntity
from domain.identity import Key
from engine.errors import Denied, Invalid
from engine.kube import SECRET
from engine.kube.json import text
from engine.settings import Settings

KEY = {"aws_access_key_id": "AKIA1", "aws_secret_access_key": "half"}
HELD = {"awsAccountID": AWS_ID, "iamUserSecret": "source", "claimLink": "claim", "claimLinkNamespace": "tenant"}


def encoded(**content: str) -> dict[str, str]:
    return {name: base64.b64encode(value.encode()).decode() for name, value in content.items()}


async def cluster(source: dict[str, str], *, byoc: bool) -> tuple[MemoryKube, DeliverCredentials | Fulfil]:
    """A claim that has a Secret already, the account that it holds, and that account's own Secret."""
    kube = MemoryKube()
    await kube.create(SECRET, {"metadata": {"name": "aws"}, "data": encoded(**KEY)}, "tenant")
    await kube.create(SECRET, {"metadata": {"name": "source"}, "data": encoded(**source)}, OPERATOR_NAMESPACE)
    held = account(spec={**HELD, "byoc": byoc}).model_dump(mode="json", exclude_none=True)
    await kube.create(ACCOUNT, held, OPERATOR_NAMESPACE)
    placed = claim(spec={"accountLink": NAME, "accountOU": "ou-1"}).model_dump(mode="json", exclude_none=True)
    await kube.create(ACCOUNT_CLAIM, placed, "tenant")
    common: dict[str, Any] = {"claim": claim().key, "account": NAME, "source_secret": "source", "support_role_arn": ""}
    if byoc:
        return kube, DeliverCredentials(**common, secret="aws", input_secret="keys")
    where = {"root": "r-1", "base": "ou-base", "legal_entity": LegalEntity(id="entity-1")}
    return kube, Fulfil(**common, **where, account_id=AWS_ID, secret_name="aws", placed=True)


async def mark(kube: MemoryKube, by: Key) -> None:
    """The Secret is this claim's, as a hand-over leaves it."""
    await kube.patch(SECRET, "tenant", "aws", {"metadata": {"annotations": {HOLDER_ANNOTATION: by.uid}}})


async def hand_over(kube: MemoryKube, action: DeliverCredentials | Fulfil) -> None:
    reader = Reader(kube, Settings())  # type: ignore[arg-type]
    if isinstance(action, Fulfil):
        await HandOver(reader, cast("Sessions", None), cast("Client", None)).hand_over(action)
    else:
        await DeliveryActivities(reader).deliver_credentials(action)


@pytest.mark.parametrize("byoc", [False, True])
@pytest.mark.parametrize("source", [{}, {"aws_access_key_id": "AKIA2"}, {**KEY, "aws_secret_access_key": ""}])
async def test_half_a_key_is_not_handed_over_and_replaces_no_other(source: dict[str, str], byoc: bool) -> None:
    kube, action = await cluster(source, byoc=byoc)
    with pytest.raises(Invalid, match="Secret aws-account-operator/source needs aws_access_key_id"):
        await hand_over(kube, action)
    assert (await kube.get(SECRET, "tenant", "aws"))["data"] == encoded(**KEY)


@pytest.mark.parametrize("byoc", [False, True])
async def test_a_whole_key_replaces_that_of_an_earlier_account(byoc: bool) -> None:
    newer = {"aws_access_key_id": "AKIA2", "aws_secret_access_key": "other half"}
    kube, action = await cluster({**newer, "aws_user_name": "osdManagedAdmin-bcd456"}, byoc=byoc)
    await mark(kube, claim().key)
    await hand_over(kube, action)
    assert (await kube.get(SECRET, "tenant", "aws"))["data"] == encoded(**newer)


async def test_if_both_secrets_are_one_the_claim_shows_its_role_and_keeps_the_key() -> None:
    newer = {"aws_access_key_id": "AKIA2", "aws_secret_access_key": "other half"}
    kube, action = await cluster(newer, byoc=True)
    one = action.model_copy(update={"input_secret": "aws", "support_role_arn": "arn"})
    await hand_over(kube, one)
    assert (await kube.get(ACCOUNT_CLAIM, "tenant", "claim"))["spec"]["supportRoleARN"] == "arn"
    reader = Reader(kube, Settings())  # type: ignore[arg-type]
    await DeliveryActivities(reader).let_secrets_go(LetSecretsGo(claim=claim().key, input_secret="aws", secret="aws"))
    assert (await kube.get(SECRET, "tenant", "aws"))["data"] == encoded(**KEY)


# --- whose Secret it is ---


async def let_go(kube: MemoryKube, by: Key, *, byoc: bool) -> None:
    """The claim is released, by the activity of its sort."""
    reader = Reader(kube, Settings())  # type: ignore[arg-type]
    if byoc:
        activities = DeliveryActivities(reader)
        await activities.remove_secret(RemoveSecret(claim=by, account=NAME, secret="aws"))
        await activities.let_secrets_go(LetSecretsGo(claim=by, input_secret="", secret="aws"))
        return
    holder = {"claimLink": by.name, "claimLinkNamespace": by.namespace}
    held = {"metadata": {"annotations": {CLAIM_UID_ANNOTATION: by.uid}}, "spec": holder}
    await kube.patch(ACCOUNT, OPERATOR_NAMESPACE, NAME, held)
    release = ReleaseAccount(
        claim=by, account=NAME, legal_entity=LegalEntity(id="entity-1"), secret_name="aws", how=Release.CLOSED
    )
    await HandOver(reader, cast("Sessions", None), cast("Client", None)).release(release)


async def secrets(kube: MemoryKube) -> list[str]:
    return [text(each, "metadata", "name") for each in (await kube.list(SECRET, "tenant")).items]


@pytest.mark.parametrize("byoc", [False, True])
async def test_a_claims_secret_goes_with_it(byoc: bool) -> None:
    kube, action = await cluster(KEY, byoc=byoc)
    await hand_over(kube, action)
    assert await secrets(kube) == ["aws"]
    await let_go(kube, claim().key, byoc=byoc)
    assert await secrets(kube) == []


@pytest.mark.parametrize("byoc", [False, True])
@pytest.mark.parametrize(
    "data",
    [{"aws_access_key_id": "AKIA9", "aws_secret_access_key": "a stranger's"}, {"password": "x"}, {**KEY, "more": "x"}],
)
async def test_a_secret_that_no_claim_made_is_neither_changed_nor_deleted(data: dict[str, str], byoc: bool) -> None:
    kube, action = await cluster(KEY, byoc=byoc)
    await kube.delete(SECRET, "tenant", "aws")
    await kube.create(SECRET, {"metadata": {"name": "aws"}, "data": encoded(**data)}, "tenant")
    with pytest.raises(Denied, match="Secret tenant/aws exists, and this claim did not create it") as error:
        await hand_over(kube, action)
    assert error.value.code == SECRET_NOT_OURS
    await let_go(kube, claim().key, byoc=byoc)
    assert (await kube.get(SECRET, "tenant", "aws"))["data"] == encoded(**data)


async def test_a_secret_of_another_living_claim_is_not_overwritten() -> None:
    kube, action = await cluster(KEY, byoc=False)
    other = claim("other").model_dump(mode="json", exclude_none=True)
    made = await kube.create(ACCOUNT_CLAIM, other, "tenant")
    await mark(kube, claim("other").key.model_copy(update={"uid": made["metadata"]["uid"]}))
    with pytest.raises(Denied, match="this claim did not create it"):
        await hand_over(kube, action)
    await mark(kube, claim("gone").key)
    await hand_over(kube, action)


@pytest.mark.parametrize("byoc", [False, True])
async def test_a_secret_without_mark_that_holds_the_accounts_key_is_taken_over(byoc: bool) -> None:
    """The replaced operator marked nothing."""
    kube, action = await cluster(KEY, byoc=byoc)
    await hand_over(kube, action)
    taken = await kube.get(SECRET, "tenant", "aws")
    assert taken["metadata"]["annotations"] == {HOLDER_ANNOTATION: claim().metadata.uid}


@pytest.mark.parametrize("byoc", [False, True])
@pytest.mark.parametrize("former", [{}, {FORMER_KEYS: "AKIA0,AKIA1"}], ids=["same-key", "rotated"])
@pytest.mark.parametrize("holder", ["", "a-claim-before-a-restore"])
async def test_a_secret_that_holds_the_accounts_key_goes_with_its_claim(
    holder: str, former: dict[str, str], byoc: bool
) -> None:
    """The replaced operator marked nothing, and restored claims have new uids."""
    key = {"aws_access_key_id": "AKIA2", "aws_secret_access_key": "new"} if former else KEY
    kube, _ = await cluster(key, byoc=byoc)
    await kube.patch(SECRET, OPERATOR_NAMESPACE, "source", {"metadata": {"annotations": former}})
    if holder:
        await mark(kube, claim().key.model_copy(update={"uid": holder}))
    await let_go(kube, claim().key, byoc=byoc)
    assert await secrets(kube) == []


@pytest.mark.parametrize("byoc", [False, True])
async def test_a_secret_that_another_claim_has_been_given_since_stays(byoc: bool) -> None:
    """A person who creates a claim again before the old one is clean names the same Secret in it."""
    kube, _ = await cluster(KEY, byoc=byoc)
    newer = await kube.get(ACCOUNT_CLAIM, "tenant", "claim")
    await mark(kube, claim().key.model_copy(update={"uid": text(newer, "metadata", "uid")}))
    await let_go(kube, claim().key.model_copy(update={"uid": "older"}), byoc=byoc)
    assert await secrets(kube) == ["aws"]


@pytest.mark.parametrize("deleting", [False, True])
async def test_a_persons_word_on_an_account_holds_for_one_release_and_for_its_own_deletion(
    deleting: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nobody(*_: object) -> None:
        """There is no server."""

    monkeypatch.setattr(handover, "wake", nobody)
    monkeypatch.setattr(handover, "now", lambda: NOW)
    kube, _ = await cluster(KEY, byoc=False)
    word = {FORCE_RELEASE: "the account is closed"}
    gone = {"deletionTimestamp": ago(minutes=1)} if deleting else {}
    await kube.patch(ACCOUNT, OPERATOR_NAMESPACE, NAME, {"metadata": {"annotations": word, **gone}})
    release = ReleaseAccount(
        claim=claim().key,
        account=NAME,
        legal_entity=LegalEntity(id="entity-1"),
        secret_name="aws",
        how=Release.UNCLEANED,
    )
    reader = Reader(kube, Settings())  # type: ignore[arg-type]
    await HandOver(reader, cast("Sessions", None), cast("Client", None)).release(release)
    left = await reader.account(NAME)
    assert left is not None
    assert (left.status.state, left.spec.claim_link) == ("Failed", "")
    assert left.metadata.annotations.get(FORCE_RELEASE, "") == (word[FORCE_RELEASE] if deleting else "")
    assert left.metadata.annotations[UNCLEANED] == word[FORCE_RELEASE]


async def test_a_role_takes_the_place_of_a_key_and_says_whose_it_is() -> None:
    kube, _ = await cluster(KEY, byoc=False)
    reader = Reader(kube, Settings())  # type: ignore[arg-type]
    await DeliveryActivities(reader).deliver_role(
        DeliverRole(claim=claim().key, account=NAME, secret="aws", role_arn="arn")
    )
    assert (await kube.get(SECRET, "tenant", "aws"))["data"] == encoded(role_arn="arn")
    await let_go(kube, claim("older").key, byoc=False)
    assert await secrets(kube) == ["aws"]
    await let_go(kube, claim().key, byoc=False)
    assert await secrets(kube) == []


@pytest.mark.parametrize(
    ("owners", "user", "stays"),
    [
        (["another"], f"osdManagedAdmin-{SUFFIX}", True),
        ([], "", True),
        ([], "osdManagedAdmin-other", True),
        ([], f"osdManagedAdmin-{SUFFIX}", False),
        (["its-own"], "", False),
    ],
)
async def test_a_fleet_managers_claim_deletes_only_the_accounts_own_secret(
    owners: list[str], user: str, stays: bool
) -> None:
    """An Account's spec may name any Secret of the operator's namespace, such as the payer's."""
    kube, _ = await cluster(KEY, byoc=False)
    reader = Reader(kube, Settings())  # type: ignore[arg-type]
    held = await reader.account(NAME)
    assert held is not None
    references = [{"uid": held.metadata.uid if each == "its-own" else each} for each in owners]
    owned = {"metadata": {"ownerReferences": references}, "data": encoded(aws_user_name=user)}
    await kube.patch(SECRET, OPERATOR_NAMESPACE, "source", owned)
    await DeliveryActivities(reader).deliver_role(
        DeliverRole(claim=claim().key, account=NAME, secret="aws", role_arn="arn")
    )
    left = [text(each, "metadata", "name") for each in (await kube.list(SECRET, OPERATOR_NAMESPACE)).items]
    assert left == (["source"] if stays else [])


async def fake(kube: MemoryKube, by: Key, *, wanted: bool) -> None:
    reader = Reader(kube, Settings())  # type: ignore[arg-type]
    await DeliveryActivities(reader).fake_secret(FakeSecret(claim=by, secret="aws", wanted=wanted))


async def test_a_fake_claims_secret_is_marked_and_goes_with_it() -> None:
    kube = MemoryKube()
    await fake(kube, claim().key, wanted=True)
    (made,) = (await kube.list(SECRET, "tenant")).items
    assert (made["data"], text(made, "metadata", "annotations", HOLDER_ANNOTATION)) == (
        encoded(**DUMMIES),
        claim().metadata.uid,
    )
    await fake(kube, claim().key, wanted=False)
    assert await secrets(kube) == []


async def test_a_fake_claim_takes_over_a_secret_with_the_dummy_keys() -> None:
    kube = MemoryKube()
    await kube.create(SECRET, {"metadata": {"name": "aws"}, "data": encoded(**DUMMIES)}, "tenant")
    await fake(kube, claim().key, wanted=True)
    await fake(kube, claim().key, wanted=False)
    assert await secrets(kube) == []


async def test_a_fake_claim_leaves_a_strangers_and_another_claims_secret_alone() -> None:
    kube, _ = await cluster(KEY, byoc=False)
    with pytest.raises(Denied, match="Secret tenant/aws exists, and this claim did not create it"):
        await fake(kube, claim().key, wanted=True)
    await fake(kube, claim().key, wanted=False)
    assert (await kube.get(SECRET, "tenant", "aws"))["data"] == encoded(**KEY)
    await kube.delete(SECRET, "tenant", "aws")
    other = claim("other").model_dump(mode="json", exclude_none=True)
    made = await kube.create(ACCOUNT_CLAIM, other, "tenant")
    await fake(kube, claim("other").key.model_copy(update={"uid": made["metadata"]["uid"]}), wanted=True)
    with pytest.raises(Denied, match="this claim did not create it"):
        await fake(kube, claim().key, wanted=True)
    await fake(kube, claim().key, wanted=False)
    assert await secrets(kube) == ["aws"]


async def test_a_fake_claim_makes_no_secret_in_an_accounts_place() -> None:
    kube, _ = await cluster(KEY, byoc=False)
    by = claim(namespace=OPERATOR_NAMESPACE).key
    reader = Reader(kube, Settings())  # type: ignore[arg-type]
    with pytest.raises(Denied, match=f"Account {NAME}'s own"):
        await DeliveryActivities(reader).fake_secret(FakeSecret(claim=by, secret=f"{NAME}-secret", wanted=True))


@pytest.mark.parametrize("name", ["aws-account-operator-credentials", f"{NAME}-secret", "of-an-old-one"])
async def test_no_claim_writes_or_deletes_the_operators_own_secrets(
    name: str,
) -> None:
    kube = MemoryKube()
    await kube.create(SECRET, {"metadata": {"name": name}, "data": encoded(**KEY)}, OPERATOR_NAMESPACE)
    old = account("osd-creds-mgmt-old222", spec={"iamUserSecret": "of-an-old-one"})
    for each in (account(), old):
        await kube.create(ACCOUNT, each.model_dump(mode="json", exclude_none=True), OPERATOR_NAMESPACE)
    by = claim(namespace=OPERATOR_NAMESPACE).key
    with pytest.raises(Denied, match="it is not overwritten"):
        await put_secret(kube, by, name, encoded(**{**KEY, "aws_access_key_id": "other"}))  # type: ignore[arg-type]
    await delete_secret(kube, by, name, KEY["aws_access_key_id"])  # type: ignore[arg-type]
    assert (await kube.get(SECRET, OPERATOR_NAMESPACE, name))["data"] == encoded(**KEY)
    await put_secret(kube, by, "its-own", encoded(**KEY))  # type: ignore[arg-type]
    await delete_secret(kube, by, "its-own")  # type: ignore[arg-type]
    assert len((await kube.list(SECRET, OPERATOR_NAMESPACE)).items) == 1


@pytest.mark.parametrize(
    ("meta", "holder", "protected"),
    [
        ({}, "other", True),
        ({"deletionTimestamp": ago(seconds=1)}, "other", True),  # the clean-up of its account needs the key
        ({"deletionTimestamp": ago(seconds=1)}, "third", False),
    ],
)
async def test_a_customers_secret_stays_protected_for_another_claim_that_names_it(
    meta: dict[str, Any], holder: str, protected: bool
) -> None:
    kube = MemoryKube()
    keys = {"metadata": {"name": "keys", "finalizers": [INPUT_SECRET_FINALIZER]}, "data": encoded(**KEY)}
    await kube.create(SECRET, keys, "tenant")
    named = {"byoc": True, "byocSecretRef": {"name": "keys", "namespace": "tenant"}}
    one, other = claim(spec=named), claim("other", spec=named, meta=meta)
    link = {"awsAccountID": AWS_ID, "byoc": True, "claimLink": holder, "claimLinkNamespace": "tenant"}
    await kube.put(one, other, account(spec=link))
    reader = Reader(kube, Settings())  # type: ignore[arg-type]
    await DeliveryActivities(reader).let_secrets_go(LetSecretsGo(claim=one.key, input_secret="keys", secret=""))
    left = (await kube.get(SECRET, "tenant", "keys"))["metadata"]["finalizers"]
    assert left == ([INPUT_SECRET_FINALIZER] if protected else [])
