"""`perdure audit`: what clouds hold that carries our marks and has no owner, and where the two sides have drifted.

Nothing is changed by it. It ends with 0 where everything fits and with 1 where something was found, so that a scheduled
job can tell.
"""

from __future__ import annotations

from typing import Annotated

import typer

from starters.cli.environment import StateOption
from starters.cli.output import Format, FormatOption, print_json, say, table, warn


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(audit)


def audit(
    area: Annotated[
        str,
        typer.Argument(metavar="AREA", help="One area: accounts, claims, instances, loadbalancers, threescale."),
    ] = "",
    thorough: Annotated[
        bool,
        typer.Option("--thorough", help="Look into every account, region and project: many calls, all reading."),
    ] = False,
    output: FormatOption = Format.TEXT,
    state: StateOption = None,
) -> None:
    """Find cloud objects of ours without an owner, and drift; exits 1 if there are any."""
    from engine.errors import Absent
    from engine.kube.errors import NO_SUCH_KIND
    from starters.cli.audits import Audit, Finding, audits
    from starters.cli.session import Session, perform

    known = audits()
    if area and area not in known:
        raise typer.BadParameter(f"there is no audit of {area!r}; there are: {', '.join(known)}", param_hint="AREA")

    async def look(session: Session) -> list[Finding]:
        if area:
            return await known[area](session, thorough=thorough)
        return [finding for name, each in known.items() for finding in await if_installed(name, each, session)]

    async def if_installed(name: str, each: Audit, session: Session) -> list[Finding]:
        """An installation need not have every area's kinds."""
        try:
            return await each(session, thorough=thorough)
        except Absent as error:
            if error.code != NO_SUCH_KIND:
                raise
            warn(f"not looked at: {name}, whose kinds are not installed here")
            return []

    found = perform(look)
    if output is Format.JSON:
        print_json(found)
    elif found:
        table(("subject", "problem", "what to do"), [(item.subject, item.problem, item.advice) for item in found])
    else:
        say("nothing found: clouds and custom resources agree")
    if found:
        raise typer.Exit(1)
