"""`perdure retry` of many lifecycles: a visibility query finds the lifecycles, and each is retried individually.

A lifecycle that has nothing to retry refuses. This is no failure, because most lifecycles recover by themselves, and
the visibility store lags behind.
"""

from __future__ import annotations

import asyncio

import typer
from temporalio.service import RPCError

from domain.identity import Key, Kind, all_kinds
from engine.errors import ApiError
from starters.cli.listing import Row, in_phase, lifecycle_rows, open_lifecycles
from starters.cli.object_reference import OfObject, Target, checked_name, path
from starters.cli.output import CommandError, Format, printed, say, table
from starters.cli.session import Session, perform, person, refusal

AT_ONCE = 5
REFUSED = "refused: "
NOT_ASKED = "would be asked for a retry"


def selection(
    kind: Kind | None = None, namespace: str = "", phase: str = "", query: str = "", *, everything: bool = False
) -> str:
    """The visibility query for the lifecycles. It leaves out the phase, because values in queries are case-sensitive.

    Raises typer.BadParameter if a value is malformed, or if neither a phase nor a query nor `--all` was given.
    """
    if not (everything or phase or query):
        raise typer.BadParameter(
            "name an object, KIND NAMESPACE/NAME, or select objects by --phase, --query or --all", param_hint="NAME"
        )
    found = open_lifecycles(kind, checked_name(namespace, "--namespace") if namespace else "")
    return found + (f" AND ({query})" if query else "")


class Retried(OfObject):
    phase: str
    """The phase according to the visibility query; empty if the command named one object."""
    retried: bool
    said: str


def retry_all(query: str, phase: str, reason: str, *, dry_run: bool, yes: bool, form: Format) -> None:
    """Retry all lifecycles that match. Exits with 1 if a request failed; a refusal is no failure."""
    rows = in_phase(perform(lambda session: found_lifecycles(session, query)), phase)
    if not rows:
        if not printed([], form):
            say("no lifecycle matches")
        return
    if dry_run:
        _print([_retried(row, said=NOT_ASKED, retried=False) for row in rows], form)
        return
    if not yes and not typer.confirm(f"Retry {len(rows)} lifecycles?", err=True):
        raise CommandError("nothing is retried", "--yes skips this question")
    by = f"{person()}: {reason}" if reason else person()
    done = perform(lambda session: _retry_each(session, rows, by))
    _print(done, form)
    failed = [each for each in done if not each.retried and not each.said.startswith(REFUSED)]
    if failed:
        raise typer.Exit(1)


def print_one(reference: Target, outcome: str, form: Format, *, retried: bool) -> None:
    if not printed(Retried(**reference.fields, phase="", retried=retried, said=outcome), form):
        say(f"{reference}: {outcome}")


async def found_lifecycles(session: Session, query: str) -> list[Row]:
    ours = [row for row in await lifecycle_rows(session, query) if row.kind in all_kinds()]
    return sorted(ours, key=lambda row: (row.kind, row.namespace, row.name))


async def _retry_each(session: Session, rows: list[Row], by: str) -> list[Retried]:
    free = asyncio.Semaphore(AT_ONCE)

    async def ask(row: Row, key: Key) -> Retried:
        from starters.cli.lifecycle import retry

        async with free:
            try:
                return _retried(row, said=await retry(session, key, by), retried=True)
            except CommandError as error:
                refused = error.message.removeprefix("retry refused: ")
                outcome = f"{REFUSED}{refused.removeprefix(f'{key.path} is ')}" if refused != error.message else refused
                return _retried(row, said=outcome, retried=False)
            except (ApiError, RPCError) as error:  # only this one failed; the others are still retried
                return _retried(row, said=refusal(error), retried=False)

    keys = ((row, row.key(session.settings.cluster)) for row in rows)
    return list(await asyncio.gather(*(ask(row, key) for row, key in keys if key is not None)))


def _retried(row: Row, *, said: str, retried: bool) -> Retried:
    named = row.model_dump(include={"kind", "namespace", "name", "phase"})
    return Retried(**named, said=said, retried=retried)


def _print(found: list[Retried], form: Format) -> None:
    if printed(found, form):
        return
    rows = [(each.kind, path(each.namespace, each.name), each.phase, each.said) for each in found]
    table(("kind", "object", "phase", "retry"), rows)
