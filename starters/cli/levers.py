"""A person's levers on one lifecycle: why, plan, retry, pause, resume, wake.

`pause` and `resume` are written on the custom resource, where they outlive every workflow; `retry` is an update that
the lifecycle may refuse; `why` and `plan` change nothing. What the lifecycle answers needs a worker; holding it, waking
it and letting it go need none.
"""

from __future__ import annotations

from typing import Annotated

import typer

from domain.identity import all_kinds
from domain.levers import PAUSED
from starters.cli.environment import StateOption
from starters.cli.output import Format, FormatOption, say
from starters.cli.target import KindArgument, NameArgument, Target, kind_named, target

ReasonOption = Annotated[str, typer.Option("--reason", "-r", help="Why, for those who read the record.")]

PANEL = "One object's lifecycle"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (why, plan, retry, pause, resume, wake):
        app.command(rich_help_panel=PANEL)(command)


def why(kind: KindArgument, name: NameArgument, output: FormatOption = Format.TEXT, state: StateOption = None) -> None:
    """Say how an object stands, what it waits for and until when, and what failed last."""
    from starters.cli import lifecycle
    from starters.cli.session import Session, perform
    from starters.cli.story import Why, tell

    asked = target(kind, name)

    async def ask(session: Session) -> Why:
        return await lifecycle.why(session, await lifecycle.find_key(session, asked))

    tell(asked, perform(ask), output)


def plan(kind: KindArgument, name: NameArgument, output: FormatOption = Format.TEXT, state: StateOption = None) -> None:
    """Look anew and say what would be done now, doing nothing."""
    from starters.cli import lifecycle
    from starters.cli.session import Session, perform
    from starters.cli.story import Why, tell_plan

    asked = target(kind, name)

    async def ask(session: Session) -> Why:
        return await lifecycle.plan(session, await lifecycle.find_key(session, asked))

    tell_plan(asked, perform(ask), output)


def retry(kind: KindArgument, name: NameArgument, reason: ReasonOption = "", state: StateOption = None) -> None:
    """Try again what failed; refused, with the reason, where there is nothing to retry."""
    from starters.cli import lifecycle
    from starters.cli.session import Session, perform, person

    asked = target(kind, name)

    async def tell(session: Session) -> str:
        key = await lifecycle.find_key(session, asked)
        return await lifecycle.retry(session, key, f"{person()}: {reason}" if reason else person())

    say(f"{asked}: {perform(tell)}")


def pause(kind: KindArgument, name: NameArgument, reason: ReasonOption = "", state: StateOption = None) -> None:
    """Hold an object: nothing is changed, in the cluster or in a cloud, until it is resumed."""
    _hold(target(kind, name), held=True, reason=reason)


def resume(kind: KindArgument, name: NameArgument, reason: ReasonOption = "", state: StateOption = None) -> None:
    """Let a paused object go on."""
    _hold(target(kind, name), held=False, reason=reason)


def wake(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="The kind; all of them with --all alone.")] = "",
    name: Annotated[str, typer.Argument(metavar="NAMESPACE/NAME", help="The object; none with --all.")] = "",
    everything: Annotated[bool, typer.Option("--all", help="Wake everything of the kind, or of all kinds.")] = False,
    state: StateOption = None,
) -> None:
    """Have an object's lifecycle look again; harmless at any time, and starts it where it does not run."""
    if everything == bool(name) or not (kind or everything):
        raise typer.BadParameter("name either one object, KIND NAMESPACE/NAME, or --all", param_hint="NAMESPACE/NAME")
    from starters.cli import lifecycle, waking
    from starters.cli.session import Session, perform

    if everything:
        kinds = (kind_named(kind),) if kind else tuple(all_kinds().values())
        say(f"{perform(lambda session: waking.wake_all(session, kinds))} lifecycles woken")
        return
    asked = target(kind, name)

    async def tell(session: Session) -> None:
        await waking.wake_one(session, await lifecycle.find_key(session, asked))

    perform(tell)
    say(f"{asked}: woken")


def _hold(asked: Target, *, held: bool, reason: str) -> None:
    from engine.kube.json import text
    from starters.cli import lifecycle, waking
    from starters.cli.records import annotate, record
    from starters.cli.session import Session, perform

    async def write(session: Session) -> bool:
        obj = await lifecycle.find_object(session, asked)
        if (text(obj, "metadata", "annotations", PAUSED) == "true") is held:
            return False
        await annotate(session, asked, {PAUSED: "true" if held else None})
        await record(session, asked, obj, "Paused" if held else "Resumed", reason)
        await waking.wake_one(session, lifecycle.key_of(session, asked, text(obj, "metadata", "uid")))
        return True

    changed = perform(write)
    word = "paused" if held else "resumed"
    say(f"{asked}: {word}" if changed else f"{asked}: {'already paused' if held else 'was not paused'}")
