"""`perdure pause` and `resume` of areas or everything, written to a ConfigMap (`domain/pauses.py`)."""

from __future__ import annotations

import typer

from domain.identity import all_areas
from domain.model import Model
from domain.pauses import CONFIG_MAP_NAME, EVERYTHING, RESUMED, Pause, Pauses, pauses_in
from domain.resource import timestamp
from engine.errors import ApiError, Denied
from starters.cli.config_maps import read_config_map, write_config_map
from starters.cli.output import Format, printed, say, utc_now, warn
from starters.cli.session import ClusterSession, perform_on_cluster, person


class Held(Model):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    area: str = ""
    paused: bool


def named(kind: str, name: str, area: str, *, everything: bool) -> str:
    """The named area, `all` for everything, or an empty string for an object. Raises typer.BadParameter unless exactly
    one of these is named.
    """
    if sum((bool(kind or name), bool(area), everything)) != 1 or (not area and not everything and not name):
        raise typer.BadParameter("name one object, KIND NAMESPACE/NAME, or --area AREA, or --all", param_hint="KIND")
    if area and area not in all_areas():
        raise typer.BadParameter(
            f"there is no area {area!r}; the areas are: {', '.join(all_areas())}", param_hint="--area"
        )
    return EVERYTHING if everything else area


def pause(what: str, reason: str, form: Format) -> None:
    if not reason.strip():
        raise typer.BadParameter("give a reason: others will read it", param_hint="--reason")
    held = Pause(by=person(), reason=reason, since=utc_now().replace(microsecond=0))

    async def write(session: ClusterSession) -> None:
        await write_config_map(session, CONFIG_MAP_NAME, {what: held.written()})

    perform_on_cluster(write)
    if not printed(Held(area=what, paused=True), form):
        say(held.described(what))


def resume(what: str, reason: str, form: Format) -> None:
    async def write(session: ClusterSession) -> Pauses:
        before = await current_pauses(session)
        if what in before:
            resumed = {RESUMED + what: timestamp(utc_now())}
            await write_config_map(session, CONFIG_MAP_NAME, {what: None}, resumed)
        return before

    before = perform_on_cluster(write)
    if not printed(Held(area=what, paused=False), form):
        described = "everything" if what == EVERYTHING else what
        say(f"{described} is resumed" if what in before else f"{described}: was not paused")
    for other in sorted(before.keys() - {what}):
        if EVERYTHING in (other, what):
            warn(f"still: {before[other].described(other)}")


async def current_pauses(session: ClusterSession) -> Pauses:
    """The pauses; empty if they cannot be read. A paused lifecycle reports its pause in any case."""
    try:
        return pauses_in(await read_config_map(session, CONFIG_MAP_NAME))
    except Denied:
        return {}
    except ApiError as error:
        warn(f"warning: it is not known whether areas are paused: {error.message}")
        return {}
