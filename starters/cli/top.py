from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from domain.backlog_report import Backlog
from domain.identity import all_areas, all_kinds, id_prefix, objectless_in
from domain.model import Model
from starters.cli import output
from starters.cli.listing import Row
from starters.cli.object_reference import path
from starters.cli.output import Format, FormatOption
from starters.cli.state_directory import StateOption

if TYPE_CHECKING:
    from starters.cli.session import Session

# The phases that show that a person is needed.
FAILING = ("Bug", "Failed", "Error", "Invalid", "GivenUp", "Rejected", "Stalled", "Unhealthy", "Unservable")
# A lifecycle is overdue if its deadline is past by more than this.
OVERDUE = timedelta(minutes=1)
WORST = 10


class AreaAtAGlance(Model):
    area: str
    open: int
    waiting: int = 0
    failing: int = 0
    stuck: int = 0
    overdue: int = 0
    paused: str = ""
    missing_workers: tuple[str, ...] = ()


class Glance(Model):
    """What `perdure top` shows. `worst` lists stuck lifecycles, then failing ones, each group with the longest open
    first. `backlog` lists work that was not started or was interrupted. A backlog without failures shows overload.
    """

    at: datetime
    areas: tuple[AreaAtAGlance, ...]
    worst: tuple[Row, ...] = ()
    backlog: tuple[Backlog, ...] = ()


def top(
    every: Annotated[float, typer.Option("--every", min=1.0, help="Seconds between refreshes, on a terminal.")] = 5.0,
    once: Annotated[bool, typer.Option("--once", help="Print once and exit.")] = False,
    output_format: FormatOption = Format.TEXT,
    state: StateOption = None,
) -> None:
    """Count the lifecycles of each area: open, waiting, failing, stuck, overdue; and list the ten worst.

    Example: perdure top --once -o json
    """
    from starters.cli.session import perform

    if once or output_format in (Format.JSON, Format.YAML) or not output.console().is_terminal:
        found = perform(look)
        if not output.printed(found, output_format):
            output.show(drawn(found))
        return

    async def refresh(session: Session) -> None:
        with Live(console=output.console(), screen=True, auto_refresh=False) as screen:
            while True:
                screen.update(drawn(await look(session)), refresh=True)
                await asyncio.sleep(every)

    with suppress(KeyboardInterrupt):
        perform(refresh)


async def look(session: Session) -> Glance:
    from starters.cli.pause_areas import current_pauses

    now = output.utc_now()
    pauses = await current_pauses(session)
    counted = [await count_area(session, area, now) for area in all_areas()]
    missing = await no_worker(session, [each.area for each in counted if each.open])
    paused = {name: pause.described(name) for name, pause in pauses.items()}
    shown = tuple(
        each.model_copy(
            update={
                "paused": paused.get("all") or paused.get(each.area, ""),
                "missing_workers": tuple(missing.get(each.area, ())),
            }
        )
        for each in counted
        if each.open or each.area in paused
    )
    needed = [each.area for each in shown if each.failing or each.stuck]
    worst = await worst_rows(session, needed, now) if needed else ()
    return Glance(at=now, areas=shown, worst=worst, backlog=await _backlog(session, [each.area for each in shown], now))


async def _backlog(session: Session, areas: Sequence[str], now: datetime) -> tuple[Backlog, ...]:
    from engine.backlog import of_objectless, of_queues
    from workers.task_queues import queues_of

    settings = session.settings
    keys = objectless_in(areas, settings.cluster, settings.claims_domain)
    in_queues = await of_queues(session.temporal, queues_of(areas, settings.cluster), now)
    return (*in_queues, *await of_objectless(session.temporal, keys, now))


async def no_worker(session: Session, areas: Sequence[str]) -> dict[str, list[str]]:
    from engine.missing_workers import missing_workers

    found: dict[str, list[str]] = defaultdict(list)
    configured = session.settings
    for each in await missing_workers(session.temporal, areas, configured.cluster, configured.worker_deployment):
        found[each.area].append(each.message)
    return found


async def count_area(session: Session, area: str, now: datetime) -> AreaAtAGlance:
    base = queried(session.settings.cluster, area)
    number = await _count(session, base)
    if not number:
        return AreaAtAGlance(area=area, open=0)
    return AreaAtAGlance(
        area=area,
        open=number,
        waiting=await _count(session, f"{base} AND OpWaitsFor IS NOT NULL"),
        failing=await _count(session, f"{base} AND {failing()}"),
        stuck=await _count(session, f"{base} AND TemporalReportedProblems IS NOT NULL"),
        overdue=await _count(session, f"{base} AND OpDeadline < '{(now - OVERDUE).isoformat()}'"),
    )


def queried(cluster: str, *areas: str) -> str:
    kinds = [kind.name for kind in all_kinds().values() if kind.area in areas and kind.lifecycle]
    ids = " OR ".join(f"WorkflowId STARTS_WITH '{id_prefix(kind, cluster)}'" for kind in kinds)
    return f"ExecutionStatus = 'Running' AND ({ids})"


def failing() -> str:
    return f"OpPhase IN ({', '.join(f'{phase!r}' for phase in FAILING)})"


async def _count(session: Session, query: str) -> int:
    return (await session.temporal.count_workflows(query)).count


async def worst_rows(session: Session, areas: Sequence[str], glance_at: datetime) -> tuple[Row, ...]:
    from starters.cli.listing import row_of

    query = f"{queried(session.settings.cluster, *areas)} AND ({failing()} OR TemporalReportedProblems IS NOT NULL)"
    found = [row_of(each) async for each in session.temporal.list_workflows(query, limit=500)]
    return tuple(sorted(found, key=lambda row: (not row.stuck, row.created or glance_at))[:WORST])


def drawn(glance: Glance) -> RenderableType:
    if not glance.areas:
        return Text("no lifecycles")
    grid = output.grid("area", "open", "waiting", "failing", "stuck", "overdue", "paused")
    for each in glance.areas:
        grid.add_row(
            each.area,
            str(each.open),
            str(each.waiting),
            *(_alarming(number) for number in (each.failing, each.stuck, each.overdue)),
            Text(each.paused, style="yellow"),
        )
    parts: list[RenderableType] = [grid]
    lacking = [Text(line, style="red") for each in glance.areas for line in each.missing_workers]
    parts += [Text(), *lacking] if lacking else []
    if glance.backlog:
        parts += [Text(), _waiting(glance.backlog, glance.at)]
    if glance.worst:
        parts += [Text(), _listed(glance.worst, glance.at)]
    return Group(*parts)


def _waiting(backlog: Sequence[Backlog], now: datetime) -> Table:
    grid = output.grid("backlog", "since", "why")
    for each in backlog:
        grid.add_row(Text(each.what, style="yellow"), output.age(each.since, now), each.why)
    return grid


def _listed(rows: Sequence[Row], now: datetime) -> Table:
    grid = output.grid("kind", "object", "phase", "waits for", "open for")
    for row in rows:
        mark = " (stuck)" if row.stuck else ""
        grid.add_row(
            row.kind,
            path(row.namespace, row.name),
            output.phase(row.phase).append(mark, style="yellow"),
            ", ".join(row.waits_for),
            output.age(row.created, now),
        )
    return grid


def _alarming(number: int) -> Text:
    return Text(str(number), style="red" if number else "")
