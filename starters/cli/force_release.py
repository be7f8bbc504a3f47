"""`perdure abandon --skip-cleanup`: completes a deletion although AWS permanently refuses the account's clean-up.

The command writes the annotation `perdure.dev/let-go`, with the reason, on the Account. A customer's account is left
unchanged; a pool's account stays Failed and is not handed out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starters.cli.object_reference import OfObject, Target
from starters.cli.output import CommandError, Format, printed, say

if TYPE_CHECKING:
    from engine.kube import JsonObject
    from starters.cli.session import ClusterSession


class Released(OfObject):
    why: str


def release(reference: Target, reason: str, output: Format) -> None:
    """Have the lifecycle complete the deletion of an AccountClaim or Account without a clean-up.

    Raises CommandError if there is nothing to release.
    """
    from domain.accounts import ACCOUNT, ACCOUNT_CLAIM
    from domain.accounts.claim_holder import may_release
    from domain.accounts.constants import OPERATOR_NAMESPACE
    from domain.accounts.force_release import FORCE_RELEASE
    from domain.accounts.resources import Account
    from engine.kube.json import key_of, text
    from starters.cli import lifecycle, wake_lifecycles
    from starters.cli.records import annotate, record
    from starters.cli.session import perform_on_cluster

    if reference.kind not in (ACCOUNT, ACCOUNT_CLAIM):
        raise CommandError(
            f"{reference}: only the clean-up of AccountClaims and Accounts can be skipped",
            "without --skip-cleanup, perdure abandon removes the finalizer",
        )

    async def write(session: ClusterSession) -> JsonObject:
        obj = await lifecycle.find_object(session, reference)
        if not text(obj, "metadata", "deletionTimestamp"):
            raise CommandError(
                f"{reference} is not being deleted: there is nothing to release",
                f"first: kubectl delete --wait=false -n {reference.namespace} {reference.resource} {reference.name}",
            )
        await annotate(session, await account_of(session, reference, obj), {FORCE_RELEASE: reason})
        await record(session, reference, obj, "LetGo", reason)
        return obj

    async def account_of(session: ClusterSession, reference: Target, obj: JsonObject) -> Target:
        """The Account to annotate. A claim's annotation cannot release a pool's account: tenants write claims."""
        if reference.kind == ACCOUNT:
            return reference
        claim = key_of(reference.kind.name, obj)
        for item in (await session.kube.list(ACCOUNT, OPERATOR_NAMESPACE)).items:
            if may_release(claim, Account.model_validate(item)):
                return Target(ACCOUNT, OPERATOR_NAMESPACE, text(item, "metadata", "name"))
        advice = f"perdure why {reference.kind.name.lower()} {reference.namespace}/{reference.name}"
        raise CommandError(f"{reference} is bound to no Account: there is nothing to release", advice)

    written = perform_on_cluster(write)
    done = Released(**reference.fields, why=reason)
    if not printed(done, output):
        say(f"{reference}: will be released without a clean-up")
    wake_lifecycles.wake_lifecycle(reference, written)
