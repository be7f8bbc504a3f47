"""`perdure list`: every lifecycle with its phase, what it waits for and until when.

One visibility query finds the open lifecycles, and one list per kind finds the objects. A lifecycle without an object
is shown as gone, an object without a lifecycle as NoLifecycle. If the cluster cannot be read, only lifecycles are
shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from domain.control_annotations import is_paused
from domain.identity import Key, Kind, all_kinds, key_found
from domain.model import Model
from domain.resource import parse_timestamp
from starters.cli import output
from starters.cli.object_reference import checked_name, kind_argument, kind_named, path
from starters.cli.output import Format, FormatOption
from starters.cli.state_directory import StateOption

if TYPE_CHECKING:
    from temporalio.client import WorkflowExecution

    from starters.cli.session import Session

NO_LIFECYCLE = "NoLifecycle"
CARRIED = "Carried"
IDLE = (NO_LIFECYCLE, CARRIED)


class Row(Model):
    """One object and its lifecycle. Times are in UTC.

    `phase` is NoLifecycle if no lifecycle is open, and Carried if the lifecycle of another object does the work. If
    `gone`, only the lifecycle exists. If `stuck`, the workers' code cannot continue the lifecycle.
    """

    kind: str
    namespace: str
    name: str
    phase: str
    waits_for: tuple[str, ...] = ()
    deadline: datetime | None = None
    paused: bool = False
    gone: bool = False
    stuck: bool = False
    owner: str = ""
    created: datetime | None = None
    workflow_id: str = ""

    def key(self, cluster: str) -> Key | None:
        return key_found(self.workflow_id, self.kind, self.namespace, self.name, cluster)


def show(
    kind: Annotated[str, kind_argument("Only this kind, by any of its names.")] = "",
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Only objects in this namespace.")] = "",
    phase: Annotated[str, typer.Option("--phase", help="Only objects in this phase; case is ignored.")] = "",
    tree: Annotated[bool, typer.Option("--tree", help="Show each object below its owner, starting with KIND.")] = False,
    output_format: FormatOption = Format.TEXT,
    state: StateOption = None,
) -> None:
    """List objects with their phase, what each waits for, and until when.

    Example: perdure list account --phase Failed
    """
    from starters.cli.pause_areas import current_pauses
    from starters.cli.session import perform
    from starters.cli.top import no_worker

    only = kind_named(kind) if kind else None
    if namespace:
        checked_name(namespace, "--namespace")

    async def look(session: Session) -> list[Row]:
        for name, pause in (await current_pauses(session)).items():
            output.warn(pause.described(name))
        # An object's dependents may be of any kind, and in another namespace.
        shown = await rows(session, None, "") if tree else await rows(session, only, namespace)
        for lines in (await no_worker(session, areas_with_lifecycles(shown))).values():
            for line in lines:
                output.warn(line)
        return shown

    found = perform(look)
    selected = in_phase(found, phase)
    branches = (
        branched(found, selected, only.name if only else "", namespace) if tree else [(0, row) for row in selected]
    )
    if not output.printed([row for _, row in branches], output_format):
        _print(branches, wide=output_format is Format.WIDE)


def in_phase(found: Iterable[Row], phase: str) -> list[Row]:
    return [row for row in found if not phase or row.phase.lower() == phase.lower()]


def areas_with_lifecycles(shown: Iterable[Row]) -> list[str]:
    kinds = all_kinds()
    return sorted({kinds[row.kind].area for row in shown if row.phase not in IDLE and row.kind in kinds})


async def rows(session: Session, kind: Kind | None, namespace: str = "") -> list[Row]:
    lifecycles = {row.workflow_id: row for row in await lifecycle_rows(session, open_lifecycles(kind, namespace))}
    listed, readable = await object_rows(session, kind, namespace)
    objects = {row.workflow_id: row for row in listed}
    merged = [_joined(row, objects.get(id_), readable) for id_, row in lifecycles.items()]
    merged += [row for id_, row in objects.items() if id_ not in lifecycles]
    return sorted(merged, key=lambda row: (row.kind, row.namespace, row.name, row.workflow_id))


def branched(found: Sequence[Row], selected: Sequence[Row], kind: str, namespace: str) -> list[tuple[int, Row]]:
    """Each row with its depth, below its owner's row. Branches without a selected row are left out.

    If a kind is given, each object of this kind starts a branch. Otherwise, a row starts a branch if its owner has no
    row.
    """
    paths = {f"{row.kind}/{row.namespace}/{row.name}": row for row in found}
    below: dict[str, list[Row]] = defaultdict(list)
    for row in found:
        below[row.owner if row.owner in paths else ""].append(row)

    def branch(row: Row, depth: int, seen: frozenset[str]) -> list[tuple[int, Row]]:
        own = f"{row.kind}/{row.namespace}/{row.name}"
        if own in seen:  # two objects that own each other
            return []
        parts = [part for each in below[own] for part in branch(each, depth + 1, seen | {own})]
        return [(depth, row), *parts] if parts or row.workflow_id in wanted else []

    wanted = {row.workflow_id for row in selected}
    roots = [row for row in found if row.kind == kind] if kind else below[""]
    return [part for row in roots if namespace in ("", row.namespace) for part in branch(row, 0, frozenset())]


def _joined(lifecycle: Row, obj: Row | None, readable: frozenset[str]) -> Row:
    """The lifecycle's row. The age is the object's, because continue-as-new resets a workflow's start time."""
    if obj is not None:
        known = {"created": obj.created, "paused": obj.paused, "owner": lifecycle.owner or obj.owner}
        return lifecycle.model_copy(update=known)
    return lifecycle.model_copy(update={"gone": lifecycle.kind in readable})


def open_lifecycles(kind: Kind | None = None, namespace: str = "") -> str:
    query = "ExecutionStatus = 'Running'"
    query += f" AND OpKind = '{kind.name}'" if kind else " AND OpKind IS NOT NULL"
    return query + (f" AND OpNamespace = '{namespace}'" if namespace else "")


async def lifecycle_rows(session: Session, query: str) -> list[Row]:
    found = [row_of(execution) async for execution in session.temporal.list_workflows(query)]
    return [row for row in found if row.key(session.settings.cluster)]


def row_of(execution: WorkflowExecution) -> Row:
    from engine.temporal import (
        OP_DEADLINE,
        OP_KIND,
        OP_NAME,
        OP_NAMESPACE,
        OP_OWNER,
        OP_PHASE,
        OP_WAITS_FOR,
        REPORTED_PROBLEMS,
    )

    known = execution.typed_search_attributes
    return Row(
        kind=known.get(OP_KIND, ""),
        namespace=known.get(OP_NAMESPACE, ""),
        name=known.get(OP_NAME, ""),
        phase=known.get(OP_PHASE, ""),
        waits_for=tuple(known.get(OP_WAITS_FOR, ())),
        deadline=known.get(OP_DEADLINE),
        stuck=bool(known.get(REPORTED_PROBLEMS)),
        owner=known.get(OP_OWNER, ""),
        created=execution.start_time,
        workflow_id=execution.id,
    )


async def object_rows(session: Session, kind: Kind | None, namespace: str) -> tuple[list[Row], frozenset[str]]:
    from engine.errors import Absent, ApiError, Denied
    from starters.cli.wake_lifecycles import kinds_with_objects

    found: list[Row] = []
    readable: set[str] = set()
    for each in kinds_with_objects():
        if kind is not None and each.name != kind.name:
            continue
        try:
            listing = await session.kube.list(each, namespace)
        except Absent:
            continue  # not installed here
        except Denied as error:
            # A user of one area may lack the rights to read other areas.
            output.warn(f"warning: {each.plural} without a lifecycle are not shown: {error.message}")
            continue
        except ApiError as error:
            output.warn(f"warning: objects without a lifecycle are not shown: {error.message}")
            return [], frozenset()
        readable.add(each.name)
        found += [object_row(session, each, item) for item in listing.items]
    return found, frozenset(readable)


def object_row(session: Session, kind: Kind, item: Mapping[str, object]) -> Row:
    from domain.custom_resources import belonging_of
    from engine.kube.json import key_of, mapping, text

    key = key_of(kind.name, item, session.settings.cluster)
    belonging = belonging_of(kind, item)
    return Row(
        kind=kind.name,
        namespace=key.namespace,
        name=key.name,
        phase=CARRIED if belonging.delegate else NO_LIFECYCLE,
        owner=belonging.delegate or belonging.owner,
        paused=is_paused(mapping(item, "metadata", "annotations")),
        created=parse_timestamp(text(item, "metadata", "creationTimestamp")),
        workflow_id=key.workflow_id,
    )


def _print(branches: Sequence[tuple[int, Row]], *, wide: bool) -> None:
    if not branches:
        output.say("no lifecycles")
        return
    columns = ("kind", "object", "phase", "waits for", "until", "age", *(("owner", "workflow") if wide else ()))
    output.table(columns, _lines(branches, output.utc_now(), wide=wide))
    found = [row for _, row in branches]
    if any(row.phase == NO_LIFECYCLE for row in found):
        output.warn(
            f"{NO_LIFECYCLE}: the object is not reconciled; is the watcher running? `perdure wake` starts a lifecycle"
        )
    if any(row.stuck for row in found):
        output.warn("stuck: the worker's code cannot continue the lifecycle; `perdure why` says how to repair it")


def _mark(row: Row) -> str:
    marks = {" (stuck)": row.stuck, " (paused)": row.paused, " (gone)": row.gone}
    return next((mark for mark, true in marks.items() if true), "")


def _lines(
    branches: Iterable[tuple[int, Row]], now: datetime, *, wide: bool = False
) -> Iterable[tuple[str | Text, ...]]:
    for depth, row in branches:
        yield (
            f"{'  ' * depth}{row.kind}",
            path(row.namespace, row.name),
            output.phase(row.phase).append(_mark(row), style="yellow"),
            ", ".join(row.waits_for),
            output.until(row.deadline, now),
            output.age(row.created, now),
            *((row.owner, row.workflow_id) if wide else ()),
        )
