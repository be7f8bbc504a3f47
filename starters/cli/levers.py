"""A person's levers on one lifecycle: why, plan, retry, pause, resume, wake.

`pause` and `resume` are written on the custom resource, where they outlive every workflow (those of whole areas into
a ConfigMap, `pausing.py`); `retry` is an update that
the lifecycle may refuse; `why` and `plan` change nothing. What the lifecycle answers needs a worker; holding it, waking
it and letting it go need none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from domain.identity import all_kinds
from domain.levers import PAUSED, is_paused
from starters.cli.completing import complete_areas, complete_kinds, complete_objects
from starters.cli.environment import StateOption
from starters.cli.output import Format, FormatOption, printed, say
from starters.cli.target import KindArgument, NameIfSeveral, Target, kind_named, target

ReasonOption = Annotated[str, typer.Option("--reason", "-r", help="Why, for those who read the record.")]

OptionalKind = Annotated[
    str,
    typer.Argument(metavar="KIND", help="The kind; none with --area or --all.", autocompletion=complete_kinds),
]
OptionalName = Annotated[
    str,
    typer.Argument(
        metavar="NAMESPACE/NAME", help="The object; none with --area or --all.", autocompletion=complete_objects
    ),
]
PlannedKind = Annotated[
    str, typer.Argument(metavar="KIND", help="The kind; none with --file.", autocompletion=complete_kinds)
]
PlannedName = Annotated[
    str,
    typer.Argument(metavar="NAMESPACE/NAME", help="The object; none with --file.", autocompletion=complete_objects),
]
RetriedKind = Annotated[
    str,
    typer.Argument(metavar="KIND", help="The kind; without it every kind.", autocompletion=complete_kinds),
]
RetriedName = Annotated[
    str,
    typer.Argument(
        metavar="NAMESPACE/NAME",
        help="The object; without it all that the options find.",
        autocompletion=complete_objects,
    ),
]
AreaOption = Annotated[
    str,
    typer.Option("--area", metavar="AREA", help="A whole area: accounts, claims, ...", autocompletion=complete_areas),
]
AllOption = Annotated[bool, typer.Option("--all", help="Everything, in every area.")]

PANEL = "One object's lifecycle"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (why, plan, retry, pause, resume, wake):
        app.command(rich_help_panel=PANEL)(command)


def why(
    kind: KindArgument, name: NameIfSeveral = "", output: FormatOption = Format.TEXT, state: StateOption = None
) -> None:
    """Say how an object stands, what it waits for and until when, and what failed last."""
    from starters.cli import lifecycle
    from starters.cli.session import Session, perform
    from starters.cli.story import Why, tell

    asked = target(kind, name)

    async def ask(session: Session) -> Why:
        return await lifecycle.why(session, await lifecycle.find_key(session, asked))

    tell(asked, perform(ask), output)


def plan(
    kind: PlannedKind = "",
    name: PlannedName = "",
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Objects as they are to be, not applied yet.", exists=True)
    ] = None,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Of objects in the file that name none.")] = "",
    output: FormatOption = Format.TEXT,
    state: StateOption = None,
) -> None:
    """Look anew and say what would be done now, doing nothing; of a file, as if it had been applied."""
    if file is not None:
        from starters.cli import planning

        if kind or name:
            raise typer.BadParameter("name an object or a file, not both", param_hint="--file")
        planning.plan_file(file, namespace or "default", output)
        return
    from starters.cli import lifecycle
    from starters.cli.session import Session, perform
    from starters.cli.story import Why, tell_plan

    asked = target(kind, name)

    async def ask(session: Session) -> Why:
        return await lifecycle.plan(session, await lifecycle.find_key(session, asked))

    tell_plan(asked, perform(ask), output)


def retry(
    kind: RetriedKind = "",
    name: RetriedName = "",
    everything: Annotated[bool, typer.Option("--all", help="Everything of the kind, or of all kinds.")] = False,
    phase: Annotated[str, typer.Option("--phase", help="Everything in this phase, such as Failed.")] = "",
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Of this namespace only.")] = "",
    query: Annotated[str, typer.Option("--query", help="What else must hold, as Temporal's lists are asked.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be asked, and ask nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before many are retried.")] = False,
    reason: ReasonOption = "",
    output: FormatOption = Format.TEXT,
    state: StateOption = None,
) -> None:
    """Try again what failed: one object, or all that are found; refused where there is nothing to retry."""
    from starters.cli import lifecycle, retrying
    from starters.cli.session import Session, perform, person

    if not name:
        only = kind_named(kind) if kind else None
        found = retrying.Sought(kind=only, namespace=namespace, phase=phase, query=query, everything=everything)
        retrying.retry_all(found, reason, dry_run=dry_run, yes=yes, form=output)
        return
    asked = target(kind, name)

    async def tell(session: Session) -> str:
        key = await lifecycle.find_key(session, asked)
        return await lifecycle.retry(session, key, f"{person()}: {reason}" if reason else person())

    retrying.tell_one(asked, perform(tell), output)


def pause(
    kind: OptionalKind = "",
    name: OptionalName = "",
    area: AreaOption = "",
    everything: AllOption = False,
    reason: ReasonOption = "",
    output: FormatOption = Format.TEXT,
    state: StateOption = None,
) -> None:
    """Hold an object, an area or everything: nothing is changed, in the cluster or in a cloud, until it is resumed."""
    from starters.cli import pausing

    if wide := pausing.named(kind, name, area, everything=everything):
        pausing.pause(wide, reason, output)
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
    """Let go on what was paused; objects that are held by themselves stay so."""
    from starters.cli import pausing

    if wide := pausing.named(kind, name, area, everything=everything):
        pausing.resume(wide, reason, output)
    else:
        _hold(target(kind, name), held=False, reason=reason, form=output)


def wake(
    kind: Annotated[
        str,
        typer.Argument(metavar="KIND", help="The kind; all of them with --all alone.", autocompletion=complete_kinds),
    ] = "",
    name: Annotated[
        str,
        typer.Argument(metavar="NAMESPACE/NAME", help="The object; none with --all.", autocompletion=complete_objects),
    ] = "",
    everything: Annotated[
        bool, typer.Option("--all", help="Wake everything of the kind, or of all that are served.")
    ] = False,
    output: FormatOption = Format.TEXT,
    state: StateOption = None,
) -> None:
    """Have an object's lifecycle look again; harmless at any time, and starts it where it does not run."""
    if everything == bool(name) or not (kind or everything):
        raise typer.BadParameter("name either one object, KIND NAMESPACE/NAME, or --all", param_hint="NAMESPACE/NAME")
    from starters.cli import lifecycle, waking
    from starters.cli.session import Session, perform

    if everything:
        kinds = (kind_named(kind),) if kind else tuple(all_kinds().values())
        done = perform(lambda session: waking.wake_all(session, kinds))
        if not printed(done, output):
            say(f"{done.woken} lifecycles woken")
        if done.failed:
            raise typer.Exit(1)
        return
    asked = target(kind, name)

    async def tell(session: Session) -> None:
        await waking.wake_one(session, await lifecycle.find_key(session, asked))

    perform(tell)
    if not printed(waking.Woken(woken=1, failed=0), output):
        say(f"{asked}: woken")


def _hold(asked: Target, *, held: bool, reason: str, form: Format) -> None:
    from engine.kube.json import JsonObject, mapping
    from starters.cli import lifecycle, waking
    from starters.cli.pausing import Held
    from starters.cli.records import annotate, record
    from starters.cli.session import ClusterSession, perform_on_cluster

    async def write(session: ClusterSession) -> JsonObject | None:
        obj = await lifecycle.find_object(session, asked)
        if is_paused(mapping(obj, "metadata", "annotations")) is held:
            return None
        await annotate(session, asked, {PAUSED: "true" if held else None})
        await record(session, asked, obj, "Paused" if held else "Resumed", reason)
        return obj

    written = perform_on_cluster(write)
    stands = Held(kind=asked.kind.name, namespace=asked.namespace, name=asked.name, paused=held)
    if not printed(stands, form):
        before, after = ("already paused", "paused") if held else ("was not paused", "resumed")
        say(f"{asked}: {before if written is None else after}")
    if written is not None:
        waking.tell_lifecycle(asked, written)
