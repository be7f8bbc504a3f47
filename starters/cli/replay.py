"""`perdure temporal replay`: checks before a release whether this code can continue lifecycles that other code began.

Histories come from files or, with `--open`, from running lifecycles. The command exits with 1 if this code cannot
continue one of them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from starters.cli.output import CommandError, Format, FormatOption, printed, say, table
from starters.cli.state_directory import StateOption

if TYPE_CHECKING:
    from temporalio.client import Client

    from engine.settings import Settings
    from workers.replaying import Replayed


def replay(
    directory: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", exists=True, file_okay=False, help="Recorded histories, as JSON.")
    ] = None,
    running: Annotated[bool, typer.Option("--open", help="Replay the histories of running lifecycles.")] = False,
    query: Annotated[
        str, typer.Option("--query", "-q", help="With --open: only lifecycles that match this query, as in the web UI.")
    ] = "",
    most: Annotated[
        int, typer.Option("--most", min=0, help="With --open: at most this many lifecycles per kind; 0 is all.")
    ] = 0,
    output: FormatOption = Format.TEXT,
    state: StateOption = None,
) -> None:
    """Replay histories with this version's workflows, and list the histories that it cannot continue."""
    if (directory is None) is not running:
        raise typer.BadParameter("name a directory of recorded histories, or --open", param_hint="DIR")
    found = _over_recorded(directory) if directory else _over_open(query, most)
    failed = [each for each in found if each.failure]
    if not printed(found, output):
        _print(found, failed)
    if not found:
        raise CommandError("there is no history to replay", "" if running else f"{directory} contains none")
    if failed:
        raise CommandError(
            f"{len(failed)} of {len(found)} histories cannot be continued by this code",
            "docs/temporal.md says what to do: a patch, or versions of the workers side by side",
        )


def _print(found: Sequence[Replayed], failed: Sequence[Replayed]) -> None:
    counted, wrong = Counter(each.kind for each in found), Counter(each.kind for each in failed)
    rows = [(kind, str(number), str(wrong[kind] or "-")) for kind, number in sorted(counted.items())]
    table(("kind", "replayed", "failed"), rows)
    for each in failed:
        say(f"\n{each.workflow}{f' run {each.run}' if each.run else ''} ({each.events} events)\n  {each.failure}")


def _over_recorded(directory: Path) -> list[Replayed]:
    from engine.encryption import data_converter
    from engine.settings import settings
    from workers import replaying

    try:
        histories = replaying.recorded(directory)
    except ValueError as error:
        raise CommandError(str(error), "each file must come from `temporal workflow show -o json`") from error
    converter = data_converter(settings())

    async def over() -> list[Replayed]:
        return [await replaying.replay(history, converter) for history in histories]

    return asyncio.run(over())


def _over_open(query: str, most: int) -> list[Replayed]:
    from starters.cli.session import perform_on_temporal
    from workers import replaying

    async def over(_: Settings, client: Client) -> list[Replayed]:
        histories = replaying.open_histories(client, query, most)
        return [await replaying.replay(history, client.data_converter) async for history in histories]

    return perform_on_temporal(over)
