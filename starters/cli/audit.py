"""`perdure audit`: what clouds hold that carries our marks and has no owner, and where the two sides have drifted.

Nothing is changed by it. It ends with 0 where everything fits and with 1 where something was found, so that a scheduled
job can tell.
"""

from __future__ import annotations

from typing import Annotated

import typer

from starters.cli.environment import StateOption
from starters.cli.output import Format, FormatOption, print_json, say, table


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(audit)


def audit(
    area: Annotated[str, typer.Argument(metavar="AREA", help="One area only: accounts, claims.")] = "",
    thorough: Annotated[
        bool, typer.Option("--thorough", help="Look into every account and region too: many calls, all reading.")
    ] = False,
    output: FormatOption = Format.TEXT,
    state: StateOption = None,
) -> None:
    """Find cloud objects of ours without an owner, and drift; exits 1 if there are any."""
    from starters.cli.audits import Finding, audits
    from starters.cli.session import Session, perform

    known = audits()
    if area and area not in known:
        raise typer.BadParameter(f"there is no audit of {area!r}; there are: {', '.join(known)}", param_hint="AREA")
    chosen = [known[area]] if area else list(known.values())

    async def look(session: Session) -> list[Finding]:
        return [finding for each in chosen for finding in await each(session, thorough=thorough)]

    found = perform(look)
    if output is Format.JSON:
        print_json(found)
    elif found:
        table(("subject", "problem", "what to do"), [(item.subject, item.problem, item.advice) for item in found])
    else:
        say("nothing found: clouds and custom resources agree")
    if found:
        raise typer.Exit(1)
