"""`perdure audit`: finds cloud objects marked or named as Perdure's that have no owner, and differences between cluster
and cloud.

With `--report`, the command writes the findings into a ConfigMap (`domain/audit_report.py`), and exits with 1 only if
an audit could not be made. A scheduled job writes this report, and the watcher exports its findings as metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from domain.audit_report import CONFIG_MAP_NAME, AreaReport, Found, failed, reported, reports_in
from starters.cli.completion import complete_areas
from starters.cli.output import Format, FormatOption, printed, say, table, utc_now, warn
from starters.cli.state_directory import StateOption

if TYPE_CHECKING:
    from engine.settings import Settings
    from starters.cli.audits import Audit, Finding
    from starters.cli.session import Session


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
        typer.Option("--thorough", help="Read every account, region and project. This makes many calls."),
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
    from engine.errors import ApiError
    from starters.cli.audits import audits, of_each
    from starters.cli.session import perform

    known = audits()
    if area and area not in known:
        raise typer.BadParameter(f"there is no audit of {area!r}, only of: {', '.join(known)}", param_hint="AREA")

    if report:
        _report(area, known, thorough=thorough)
        return

    unread: list[str] = []

    async def look(session: Session) -> list[Finding]:
        if area:
            return await known[area](session, thorough=thorough)
        found: list[Finding] = []
        async for name, made in of_each(session, served_audits(known, session.settings), thorough=thorough):
            if isinstance(made, ApiError):
                unread.append(name)
                warn(f"warning: {name} could not be audited: {made.message}")
            else:
                found += made
        return found

    found = perform(look)
    if not printed(found, output) and found:
        wide = output is Format.WIDE
        columns = (*(("area",) if wide else ()), "subject", "problem", "what to do")
        rows = [(*((item.area,) if wide else ()), item.subject, item.problem, item.advice) for item in found]
        table(columns, rows)
    elif not found and not unread and output in (Format.TEXT, Format.WIDE):
        say("nothing found: clouds and custom resources agree")
    if found or unread:
        raise typer.Exit(1)


def served_audits(known: Mapping[str, Audit], settings: Settings) -> Mapping[str, Audit]:
    return {area: each for area, each in known.items() if not settings.areas or area in settings.areas}


async def write_reports(
    session: Session, known: Mapping[str, Audit], *, thorough: bool, now: Callable[[], datetime]
) -> Mapping[str, AreaReport]:
    """Write each result into the ConfigMap as soon as its audit is done."""
    from engine.errors import ApiError
    from starters.cli.audits import of_each
    from starters.cli.config_maps import read_config_map, write_config_map

    before = reports_in(await read_config_map(session, CONFIG_MAP_NAME))
    done: dict[str, AreaReport] = {}
    async for area, made in of_each(session, known, thorough=thorough):
        if isinstance(made, ApiError):
            done[area] = failed(before.get(area, AreaReport()), made.message)
        else:
            found = (Found(subject=each.subject, problem=each.problem, advice=each.advice) for each in made)
            done[area] = reported(now(), tuple(found))
        await write_config_map(session, CONFIG_MAP_NAME, {area: done[area].written()})
    return done


def _report(area: str, known: Mapping[str, Audit], *, thorough: bool) -> None:
    from starters.cli.session import perform

    async def write(session: Session) -> Mapping[str, AreaReport]:
        wanted = {area: known[area]} if area else served_audits(known, session.settings)
        return await write_reports(session, wanted, thorough=thorough, now=utc_now)

    done = perform(write)
    for name, made in done.items():
        say(f"{name}: {made.trouble or f'{made.total} findings'}")
    if any(made.trouble for made in done.values()):
        raise typer.Exit(1)
