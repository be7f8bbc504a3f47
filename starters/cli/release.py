"""`perdure release`: have a claim let go of an account that cannot be cleaned up any more.

A deleted claim removes what is ours from a customer's account, or all of the tenant's things from a pool's. Where AWS
refuses that for good (the customer has shut every door, the account is closed), the claim says so and stays, and its
namespace with it. The annotation `perdure.dev/let-go` with the reason ends that: a customer's account is left as it
is, a pool's stays Failed and without a claim, and goes to nobody. It is written onto the Account that the claim holds,
which tenants cannot write: on a claim of a pool it has no effect. Its own lifecycle does the rest, finalizers, Secrets
and all, so unlike `perdure abandon` nothing is left half-done in the cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from domain.model import Model
from starters.cli.environment import StateOption
from starters.cli.output import CommandError, Format, FormatOption, printed, say
from starters.cli.target import KindArgument, NameArgument, Target, target

if TYPE_CHECKING:
    from engine.kube import JsonObject
    from starters.cli.session import ClusterSession


class Released(Model):
    """What was let go, for programs."""

    kind: str
    namespace: str
    name: str
    why: str


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel="One object's lifecycle")(release)


def release(
    kind: KindArgument,
    name: NameArgument,
    reason: Annotated[str, typer.Option("--reason", "-r", help="Why; kept on the object.")],
    output: FormatOption = Format.TEXT,
    state: StateOption = None,
) -> None:
    """Have a deleted AccountClaim (or Account) let go without the clean-up that AWS refuses."""
    from domain.accounts import ACCOUNT, ACCOUNT_CLAIM
    from domain.accounts.letting_go import LET_GO
    from engine.kube.json import text
    from starters.cli import lifecycle, waking
    from starters.cli.records import annotate, record
    from starters.cli.session import perform_on_cluster

    asked = target(kind, name)
    if asked.kind not in (ACCOUNT, ACCOUNT_CLAIM):
        raise CommandError(f"{asked}: only AccountClaims and Accounts are let go so", "others: perdure abandon")
    if not reason.strip():
        raise CommandError(f"{asked}: the reason is empty", "it is kept on the object: say why")

    async def write(session: ClusterSession) -> JsonObject:
        obj = await lifecycle.find_object(session, asked)
        if not text(obj, "metadata", "deletionTimestamp"):
            raise CommandError(
                f"{asked} is not being deleted: there is nothing to let go of",
                f"first: kubectl delete --wait=false -n {asked.namespace} {asked.resource} {asked.name}",
            )
        await annotate(session, _told(asked, obj), {LET_GO: reason})
        await record(session, asked, obj, "LetGo", reason)
        return obj

    written = perform_on_cluster(write)
    done = Released(kind=asked.kind.name, namespace=asked.namespace, name=asked.name, why=reason)
    if not printed(done, output):
        say(f"{asked}: let go without a clean-up")
    waking.tell_lifecycle(asked, written)


def _told(asked: Target, obj: JsonObject) -> Target:
    """Where the reason is written: onto the Account that a claim is linked to, else onto the object itself."""
    from domain.accounts import ACCOUNT
    from domain.accounts.constants import OPERATOR_NAMESPACE
    from engine.kube.json import text

    link = text(obj, "spec", "accountLink")
    return target(ACCOUNT.name, f"{OPERATOR_NAMESPACE}/{link}") if link else asked
