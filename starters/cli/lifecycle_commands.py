"""A person's commands for lifecycles: why, plan, retry, pause, resume, wake.

`pause` and `resume` write to the custom resource, or for an area to a ConfigMap (`pause_areas.py`). `retry` sends an
update, which the lifecycle may refuse. `pause`, `resume` and `wake` need no worker.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from domain.control_annotations import PAUSED, is_paused
from domain.identity import all_kinds
from starters.cli.completion import complete_areas
from starters.cli.object_reference import (
    KindArgument,
    NameIfSeveral,
    Target,
    kind_argument,
    kind_named,
    name_argument,
    target,
)
from starters.cli.output import Format, FormatOption, printed, say
from starters.cli.state_directory import StateOption

if TYPE_CHECKING:
    from domain.identity import Key
    from domain.why import Why
    from starters.cli.session import Session

ReasonOption = Annotated[str, typer.Option("--reason", "-r", help="The reason; it is recorded.")]

OptionalKind = Annotated[str, kind_argument("The kind; not with --area or --all.")]
OptionalName = Annotated[str, name_argument("The object; not with --area or --all.")]
AreaOption = Annotated[
    str,
    typer.Option(
        "--area",
        metavar="AREA",
        help="One of accounts, claims, instances, loadbalancers, threescale.",
        autocompletion=complete_areas,
    ),
]
AllOption = Annotated[bool, typer.Option("--all", help="Everything, in every area.")]


def why(
    kind: KindArgument, name: NameIfSeveral = "", output: FormatOption = Format.TEXT, state: StateOption = None
) -> None:
    """Explain one object: its state, what it waits for, until when, what happens then, and what failed.

    Example: perdure why account aws-account-operator/osd-creds-mgmt-x7k2p
    """
    from starters.cli import lifecycle
    from starters.cli.why_output import print_why

    reference = target(kind, name)
    print_why(reference, _answer(reference, lifecycle.why), output)


def plan(
    kind: Annotated[str, kind_argument("The kind; not with --file.")] = "",
    name: Annotated[str, name_argument("The object; not with --file.")] = "",
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", help="Manifests that are not applied yet; - is standard input."),
    ] = None,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Namespace for manifests that name none.")] = "",
    output: FormatOption = Format.TEXT,
    state: StateOption = None,
) -> None:
    """Show what would be done now, for an object or for a file as if it were applied. Nothing is changed.

    Example: perdure plan --file pool.yaml
    """
    if file is not None:
        from starters.cli import plan_files

        if kind or name:
            raise typer.BadParameter("name an object or a file, not both", param_hint="--file")
        if str(file) != "-" and not file.exists():
            raise typer.BadParameter(f"{file} does not exist", param_hint="--file")
        plan_files.plan_file(file, namespace or "default", output)
        return
    if not kind:
        raise typer.BadParameter("name an object, KIND NAMESPACE/NAME, or a file", param_hint="--file")
    from starters.cli import lifecycle
    from starters.cli.why_output import print_plan

    reference = target(kind, name)
    print_plan(reference, _answer(reference, lifecycle.plan), output)


def _answer(reference: Target, question: Callable[[Session, Key], Awaitable[Why]]) -> Why:
    from starters.cli import lifecycle
    from starters.cli.session import perform

    async def ask(session: Session) -> Why:
        return await question(session, await lifecycle.find_key(session, reference))

    return perform(ask)


def retry(
    kind: Annotated[str, kind_argument("The kind. Without it: every kind.")] = "",
    name: Annotated[str, name_argument("The object. Without it: all objects that match the options.")] = "",
    everything: Annotated[bool, typer.Option("--all", help="All objects of KIND, or of all kinds.")] = False,
    phase: Annotated[
        str, typer.Option("--phase", help="All objects in this phase, such as Failed; case is ignored.")
    ] = "",
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Only objects in this namespace.")] = "",
    query: Annotated[str, typer.Option("--query", help="Only lifecycles that match this visibility query.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would be retried, and retry nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    reason: ReasonOption = "",
    output: FormatOption = Format.TEXT,
    state: StateOption = None,
) -> None:
    """Try again what failed, for one object or for all that match. Refused if nothing has failed.

    Example: perdure retry account --phase Failed --dry-run
    """
    from starters.cli import bulk_retry, lifecycle
    from starters.cli.session import perform, person

    if not name:
        only = kind_named(kind) if kind else None
        selected = bulk_retry.selection(only, namespace, phase, query, everything=everything)
        bulk_retry.retry_all(selected, phase, reason, dry_run=dry_run, yes=yes, form=output)
        return
    if everything or phase or namespace or query:
        message = "name one object, or select objects by --phase, --namespace, --query or --all, not both"
        raise typer.BadParameter(message, param_hint="NAMESPACE/NAME")
    reference = target(kind, name)

    async def retry_one(session: Session) -> str:
        key = await lifecycle.find_key(session, reference)
        if dry_run:
            return bulk_retry.NOT_ASKED
        return await lifecycle.retry(session, key, f"{person()}: {reason}" if reason else person())

    bulk_retry.print_one(reference, perform(retry_one), output, retried=not dry_run)


def pause(
    kind: OptionalKind = "",
    name: OptionalName = "",
    area: AreaOption = "",
    everything: AllOption = False,
    reason: ReasonOption = "",
    output: FormatOption = Format.TEXT,
    state: StateOption = None,
) -> None:
    """Pause an object, an area or everything: nothing is changed in the cluster or a cloud until `perdure resume`.

    Example: perdure pause --area accounts --reason "the payer's key leaked"
    """
    from starters.cli import pause_areas

    if wide := pause_areas.named(kind, name, area, everything=everything):
        pause_areas.pause(wide, reason, output)
    else:
        _hold(target(kind, name), held=True, reason=reason, form=output)


def resume(
    kind: OptionalKind = "",
    name: OptionalName = "",
    area: AreaOption = "",
    everything: AllOption = False,
    reason: ReasonOption = "",
    output: FormatOption = Format.TEXT,
    state: StateOption = None,
) -> None:
    """Resume reconciliation. Objects that were paused individually stay paused when an area resumes.

    Example: perdure resume --area accounts
    """
    from starters.cli import pause_areas

    if wide := pause_areas.named(kind, name, area, everything=everything):
        pause_areas.resume(wide, reason, output)
    else:
        _hold(target(kind, name), held=False, reason=reason, form=output)


def wake(
    kind: Annotated[str, kind_argument("The kind. Without it, --all wakes every kind.")] = "",
    name: Annotated[str, name_argument("The object; not with --all.")] = "",
    everything: Annotated[
        bool, typer.Option("--all", help="All objects of KIND, or of every kind that is served.")
    ] = False,
    output: FormatOption = Format.TEXT,
    state: StateOption = None,
) -> None:
    """Reconcile an object now. This is harmless at any time, and starts the lifecycle if it does not run.

    Example: perdure wake --all
    """
    if (everything and name) or not (kind or everything):
        raise typer.BadParameter("name either one object, KIND NAMESPACE/NAME, or --all", param_hint="NAMESPACE/NAME")
    from starters.cli import lifecycle, wake_lifecycles
    from starters.cli.session import perform

    if everything:
        kinds = (kind_named(kind),) if kind else tuple(all_kinds().values())
        done = perform(lambda session: wake_lifecycles.wake_all(session, kinds))
        if not printed(done, output):
            say(f"{done.woken} lifecycles woken")
        if done.failed:
            raise typer.Exit(1)
        return
    reference = target(kind, name)

    async def wake_it(session: Session) -> None:
        await wake_lifecycles.wake_one(session, await lifecycle.find_key(session, reference))

    perform(wake_it)
    if not printed(wake_lifecycles.Woken(woken=1, failed=0), output):
        say(f"{reference}: woken")


def _hold(reference: Target, *, held: bool, reason: str, form: Format) -> None:
    from engine.kube.json import JsonObject, mapping
    from starters.cli import lifecycle, wake_lifecycles
    from starters.cli.pause_areas import Held
    from starters.cli.records import annotate, record
    from starters.cli.session import ClusterSession, perform_on_cluster

    async def write(session: ClusterSession) -> JsonObject | None:
        obj = await lifecycle.find_object(session, reference)
        if is_paused(mapping(obj, "metadata", "annotations")) is held:
            return None
        await annotate(session, reference, {PAUSED: "true" if held else None})
        await record(session, reference, obj, "Paused" if held else "Resumed", reason)
        return obj

    written = perform_on_cluster(write)
    outcome = Held(**reference.fields, paused=held)
    if not printed(outcome, form):
        before, after = ("already paused", "paused") if held else ("was not paused", "resumed")
        say(f"{reference}: {before if written is None else after}")
    if written is not None:
        wake_lifecycles.wake_lifecycle(reference, written)
