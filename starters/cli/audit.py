"""`perdure audit`: finds cloud objects that Perdure has marked but that have no owner, and differences between cluster
and cloud.

The command exits with 1 if it found something, or if an area could not be read. With `--report` (`audit_report.py`),
findings are no failure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from engine import command_groups
from starters.cli.completion import complete_areas
from starters.cli.environment import StateOption
from starters.cli.output import Format, FormatOption, printed, say, table, utc_now, warn

if TYPE_CHECKING:
    from domain.audit_report import AreaReport
    from engine.settings import Settings
    from starters.cli.audits import Audit


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel=command_groups.LOOK)(audit)


def audit(
    area: Annotated[
        str,
        typer.Argument(
            metavar="AREA",
            help="One of accounts, claims, instances, loadbalancers, threescale. Without it: every served area.",
            autocompletion=complete_areas,
        ),
    ] = "",
    thorough: Annotated[
        bool,
        typer.Option("--thorough", help="Read every account, region and project: many calls."),
    ] = False,
    report: Annotated[
        bool, typer.Option("--report", help="Write the findings into the ConfigMap perdure-audit.")
    ] = False,
    output: FormatOption = Format.TEXT,
    state: StateOption = None,
) -> None:
    """Find cloud objects without an owner, and differences between cluster and cloud. Changes nothing.

    Exits with 1 if something was found, or if an audit was not possible.

    Example: perdure audit loadbalancers -o json
    """
    from engine.errors import Absent, ApiError
    from engine.kube.errors import NO_SUCH_KIND
    from starters.cli.audits import Finding, audits
    from starters.cli.session import Session, perform

    known = audits()
    if area and area not in known:
        raise typer.BadParameter(f"there is no audit of {area!r}; there are: {', '.join(known)}", param_hint="AREA")

    if report:
        _report(area, known, thorough=thorough)
        return

    failed: list[str] = []

    async def look(session: Session) -> list[Finding]:
        if area:
            return await known[area](session, thorough=thorough)
        served = served_audits(known, session.settings).items()
        return [finding for name, each in served for finding in await of_one(name, each, session)]

    async def of_one(name: str, each: Audit, session: Session) -> list[Finding]:
        try:
            return await each(session, thorough=thorough)
        except ApiError as error:
            if isinstance(error, Absent) and error.code == NO_SUCH_KIND:
                warn(f"skipped: {name}, whose kinds are not installed here")
            else:
                failed.append(name)
                warn(f"warning: {name} could not be audited: {error.message}")
            return []

    found = perform(look)
    if not printed(found, output) and found:
        wide = output is Format.WIDE
        columns = (*(("area",) if wide else ()), "subject", "problem", "what to do")
        rows = [(*((item.area,) if wide else ()), item.subject, item.problem, item.advice) for item in found]
        table(columns, rows)
    elif not found and not failed and output in (Format.TEXT, Format.WIDE):
        say("nothing found: clouds and custom resources agree")
    if found or failed:
        raise typer.Exit(1)


def served_audits(known: Mapping[str, Audit], settings: Settings) -> Mapping[str, Audit]:
    return {area: each for area, each in known.items() if not settings.areas or area in settings.areas}


def _report(area: str, known: Mapping[str, Audit], *, thorough: bool) -> None:
    from starters.cli.audit_report import report
    from starters.cli.session import Session, perform

    async def write(session: Session) -> Mapping[str, AreaReport]:
        wanted = {area: known[area]} if area else served_audits(known, session.settings)
        return await report(session, wanted, thorough=thorough, now=utc_now)

    done = perform(write)
    for name, made in done.items():
        say(f"{name}: {made.trouble or f'{made.total} findings'}")
    if any(made.trouble for made in done.values()):
        raise typer.Exit(1)
