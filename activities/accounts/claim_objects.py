"""Kubernetes objects that are created for claims: the Account of a customer's AWS account, and Secrets.

In the customer's own Secret, only our finalizer is changed.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import count

from temporalio import activity

from activities.accounts.cache import Reader
from activities.accounts.claim_secrets import KEY_FIELDS, ROLE_FIELD, copy_key, delete_secret, key_ids_of, put_secret
from activities.activity_class import Activities
from activities.aws import admin_key_secret
from domain.accounts import ACCOUNT, ACCOUNT_CLAIM
from domain.accounts.actions.claim_secrets import (
    DeliverCredentials,
    DeliverRole,
    FakeSecret,
    HoldInputSecret,
    LetSecretsGo,
    RemoveSecret,
)
from domain.accounts.actions.handover import MadeAccount, MakeCustomerAccount
from domain.accounts.claim_holder import links_back, may_release
from domain.accounts.constants import (
    ADMIN_USER_PREFIX,
    CLAIM_UID_ANNOTATION,
    FINALIZER,
    IAM_USER_ID_LABEL,
    INPUT_SECRET_FINALIZER,
    OPERATOR_NAMESPACE,
)
from domain.accounts.naming import account_name, secret_of, suffix_of
from domain.accounts.resources import Account, AccountClaim, oldest_first
from domain.writes import JsonPatch
from engine.errors import Absent, Conflict, Denied, Invalid
from engine.kube import SECRET
from engine.kube.json import JsonObject, mapping, sequence, text
from engine.kube.secrets import secret_data

# Literal values of the replaced operator.
DUMMIES = {"aws_access_key_id": "fakeAccessKey", "aws_secret_access_key": "FakeSecretAccesskey"}


class DeliveryActivities(Activities):
    def __init__(self, reader: Reader) -> None:
        self._read = reader
        self._kube = reader.kube

    @activity.defn(name=MakeCustomerAccount.activity)
    async def make_account(self, action: MakeCustomerAccount) -> MadeAccount:
        """Return the oldest Account that names the claim, else create one."""
        accounts = await self._read.accounts_held_by(action.claim)
        own = [each for each in accounts if _serves(each, action) and not each.metadata.deleting]
        if own:
            return MadeAccount(made=oldest_first(own)[0].metadata.name)
        for serial in count():
            suffix = suffix_of(action.claim.uid, str(serial))
            try:
                await self._kube.create(ACCOUNT, _manifest(action, suffix), OPERATOR_NAMESPACE)
            except Conflict:
                # Either an unrelated object has that name, or an earlier creation succeeded but its answer was lost.
                present = await self._read.account(account_name(suffix))
                if present is None or not _serves(present, action) or present.metadata.deleting:
                    continue
            break
        return MadeAccount(made=account_name(suffix))

    @activity.defn(name=HoldInputSecret.activity)
    async def hold_input_secret(self, action: HoldInputSecret) -> None:
        """Add our finalizer, unless the Secret is being deleted. Raises Invalid if the Secret lacks a part of the
        access key.
        """
        found = await self._kube.get(SECRET, action.claim.namespace, action.secret)
        if not all(mapping(found, "data").get(field) for field in KEY_FIELDS):
            where = f"Secret {action.claim.namespace}/{action.secret}"
            raise Invalid(f"{where} needs {' and '.join(KEY_FIELDS)}", code="BYOCSecretIncomplete")
        if text(found, "metadata", "deletionTimestamp"):
            return
        finalizers = _finalizers(found)
        if INPUT_SECRET_FINALIZER not in finalizers:
            await self._set_finalizers(found, [*finalizers, INPUT_SECRET_FINALIZER])

    @activity.defn(name=DeliverCredentials.activity)
    async def deliver_credentials(self, action: DeliverCredentials) -> None:
        account = await self._read.account(action.account)
        if account is None or not links_back(account, action.claim) or not account.customers:
            raise _not_the_holder(action.account)
        if action.secret != action.input_secret:
            await copy_key(self._kube, action.claim, action.secret, action.source_secret)
        spec: JsonPatch = {"spec": {"supportRoleARN": action.support_role_arn}}
        await self._read.write_to(ACCOUNT_CLAIM, action.claim, spec)

    @activity.defn(name=RemoveSecret.activity)
    async def remove_secret(self, action: RemoveSecret) -> None:
        account = await self._read.account(action.account)
        if account is not None and may_release(action.claim, account):
            await delete_secret(self._kube, action.claim, action.secret, await key_ids_of(self._kube, account))

    @activity.defn(name=LetSecretsGo.activity)
    async def let_secrets_go(self, action: LetSecretsGo) -> None:
        namespace = action.claim.namespace
        if action.secret and action.secret != action.input_secret:
            await delete_secret(self._kube, action.claim, action.secret)
        if not action.input_secret:
            return
        try:
            found = await self._kube.get(SECRET, namespace, action.input_secret)
            finalizers = _finalizers(found)
            if INPUT_SECRET_FINALIZER in finalizers and not await self._another_needs(action):
                await self._set_finalizers(found, [each for each in finalizers if each != INPUT_SECRET_FINALIZER])
        except Absent:
            return

    async def _another_needs(self, action: LetSecretsGo) -> bool:
        """Whether another claim names the same Secret. The clean-up of its Account needs the key, too."""
        claim = action.claim
        others = await self._read.all(AccountClaim, claim.namespace) if await self._read.customers_beside(claim) else ()
        for each in others:
            named = each.spec.byoc and each.spec.byoc_secret_ref.name == action.input_secret
            if not named or each.spec.manual_sts_mode or each.metadata.uid == claim.uid:
                continue
            if not each.metadata.deleting or await self._read.accounts_held_by(each.key):
                return True
        return False

    @activity.defn(name=DeliverRole.activity)
    async def deliver_role(self, action: DeliverRole) -> None:
        account = await self._read.account(action.account)
        if account is None or not links_back(account, action.claim):
            raise _not_the_holder(action.account)
        # A key that the Secret still has is removed: it belongs to an earlier account and is no longer valid.
        content = {**dict.fromkeys(KEY_FIELDS), **secret_data({ROLE_FIELD: action.role_arn})}
        await put_secret(self._kube, action.claim, action.secret, content, await key_ids_of(self._kube, account))
        await self._delete_key(account)
        if account.spec.iam_user_secret:
            await self._read.write(account, {"spec": {"iamUserSecret": ""}})

    # --- fake claims ---

    @activity.defn(name=FakeSecret.activity)
    async def fake_secret(self, action: FakeSecret) -> None:
        if action.wanted:
            await put_secret(self._kube, action.claim, action.secret, secret_data(DUMMIES))
        else:
            await delete_secret(self._kube, action.claim, action.secret, {DUMMIES["aws_access_key_id"]})

    async def _set_finalizers(self, found: JsonObject, finalizers: list[str]) -> None:
        await self._kube.patch(
            SECRET,
            text(found, "metadata", "namespace"),
            text(found, "metadata", "name"),
            {"metadata": {"finalizers": finalizers}},
            resource_version=text(found, "metadata", "resourceVersion"),
        )

    async def _delete_key(self, account: Account) -> None:
        """Delete the Account's own Secret. If the spec names a Secret of another owner, that Secret is not deleted."""
        name = account.spec.iam_user_secret or secret_of(account.metadata.name)
        with suppress(Absent, Conflict):
            found = admin_key_secret.known(await self._kube.get(SECRET, OPERATOR_NAMESPACE, name))
            if not found.foreign_to(account.key, f"{ADMIN_USER_PREFIX}{account.iam_user_id}"):
                await self._kube.delete(SECRET, OPERATOR_NAMESPACE, name, resource_version=found.resource_version)


def _serves(account: Account, action: MakeCustomerAccount) -> bool:
    same = account.spec.aws_account_id == action.account_id
    return account.customers and same and links_back(account, action.claim)


def _not_the_holder(account: str) -> Denied:
    return Denied(f"Account {account} does not name this claim in spec.claimLink", code="NotTheHolder")


def _finalizers(obj: JsonObject) -> list[str]:
    return [str(each) for each in sequence(obj, "metadata", "finalizers")]


def _manifest(action: MakeCustomerAccount, suffix: str) -> JsonObject:
    """The Account as the replaced operator writes it. It has no owner reference: the claim is in another namespace."""
    return {
        "metadata": {
            "name": account_name(suffix),
            "labels": {IAM_USER_ID_LABEL: suffix},
            "finalizers": [FINALIZER],
            "annotations": {CLAIM_UID_ANNOTATION: action.claim.uid},
        },
        "spec": {
            "awsAccountID": action.account_id,
            "iamUserSecret": "",
            "byoc": True,
            "claimLink": action.claim.name,
            "claimLinkNamespace": action.claim.namespace,
            "legalEntity": action.legal_entity.model_dump(mode="json"),
            "manualSTSMode": action.manual_sts_mode,
        },
    }
