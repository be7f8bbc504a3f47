"""`perdure pause` and `resume` of a whole area, or of everything: written into one ConfigMap (`domain/pauses.py`).

Workers and watcher obey it by watches of their own; nothing has to run for it to be written. It is shown by `why`,
`list`, `top` and `status`, and told as the metric `perdure_paused`.
"""

from __future__ import annotations

from collections.abc import Mapping

import typer

from domain.identity import all_kinds
from domain.pauses import CONFIG_MAP_NAME, EVERYTHING, RESUMED, Pause, Pauses, pauses_in
from domain.resource import timestamp
from engine.errors import Absent, ApiError, Conflict, Denied
from engine.kube import CONFIG_MAP, NAMESPACE
from starters.cli.output import CommandError, say, utc_now, warn
from starters.cli.session import FIELD_MANAGER, Session, perform, person


def named(kind: str, name: str, area: str, *, everything: bool) -> str:
    """The area that is meant, `all`, or nothing where an object is.

    Raises:
        typer.BadParameter: not exactly one of them is named.
    """
    if sum((bool(kind or name), bool(area), everything)) != 1 or (not area and not everything and not name):
        raise typer.BadParameter("name one object, KIND NAMESPACE/NAME, or --area AREA, or --all", param_hint="KIND")
    known = sorted({each.area for each in all_kinds().values() if each.lifecycle})
    if area and area not in known:
        raise typer.BadParameter(f"there is no area {area!r}; there are: {', '.join(known)}", param_hint="--area")
    return EVERYTHING if everything else area


def pause(what: str, reason: str) -> None:
    """Hold it."""
    if not reason:
        raise typer.BadParameter("say why: others will find it paused", param_hint="--reason")
    held = Pause(by=person(), reason=reason, since=utc_now().replace(microsecond=0))

    async def write(session: Session) -> None:
        await _patch(session, {what: held.written()}, {})

    perform(write)
    say(held.told(what))


def resume(what: str, reason: str) -> None:
    """Let it go on."""

    async def write(session: Session) -> Pauses:
        before = await standing(session)
        if what in before:
            await _patch(session, {what: None}, {RESUMED + what: timestamp(utc_now())})
        return before

    before = perform(write)
    if what not in before:
        say(f"{'everything' if what == EVERYTHING else what}: was not paused")
    else:
        say(f"{'everything' if what == EVERYTHING else what} goes on")
    for other in sorted(before.keys() - {what}):
        if EVERYTHING in (other, what):
            warn(f"still: {before[other].told(other)}")


async def standing(session: Session) -> Pauses:
    """What is paused now; nothing where that may not be read: lifecycles that are held say so themselves."""
    try:
        return pauses_in(await session.kube.get(CONFIG_MAP, _namespace(session), CONFIG_MAP_NAME))
    except (Absent, Denied):
        return {}
    except ApiError as error:
        warn(f"warning: whether areas are paused is not known: {error.message}")
        return {}


async def _patch(session: Session, data: Mapping[str, str | None], annotations: Mapping[str, str]) -> None:
    """Write the ConfigMap, and make it where there is none."""
    namespace, patch = _namespace(session), {"data": dict(data), "metadata": {"annotations": dict(annotations)}}
    for _ in range(3):
        try:
            await session.kube.patch(CONFIG_MAP, namespace, CONFIG_MAP_NAME, patch, field_manager=FIELD_MANAGER)
            return
        except Absent:
            await _make(session, namespace)
    raise CommandError(f"ConfigMap {namespace}/{CONFIG_MAP_NAME} cannot be written", "somebody deletes it: try again")


async def _make(session: Session, namespace: str) -> None:
    made = {"metadata": {"name": CONFIG_MAP_NAME}}
    try:
        await session.kube.create(CONFIG_MAP, made, namespace, field_manager=FIELD_MANAGER)
    except Conflict:
        return
    except Absent:
        # A local deployment has no need of Perdure's own namespace otherwise.
        await session.kube.create(NAMESPACE, {"metadata": {"name": namespace}}, field_manager=FIELD_MANAGER)


def _namespace(session: Session) -> str:
    return session.settings.watch_lease_namespace
