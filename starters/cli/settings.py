from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from domain.model import Model
from engine.settings import (
    GROUPS,
    Settings,
    as_text,
    no_setting,
    read_settings,
    settings_of,
    unknown_variables,
    variable_of,
)
from starters.cli.output import Format, FormatOption, grid, printed, show, warn
from starters.cli.state_directory import StateOption, exports

Source = Literal["default", "environment", "state directory"]
SetOption = Annotated[
    bool, typer.Option("--set", help="Only settings that the environment or the state directory sets.")
]


class Effective(Model):
    group: str
    variable: str
    value: str
    source: Source
    meaning: str


class EffectiveSettings(Model):
    settings: tuple[Effective, ...]
    # Variables `PERDURE_*` that are no settings, each with the nearest setting's name or an empty string.
    unknown: dict[str, str]


def settings(only_set: SetOption = False, output: FormatOption = Format.TEXT, state: StateOption = None) -> None:
    """Print the settings in effect, where each comes from, and the variables that have no effect.

    Example: perdure settings --set
    """
    found = effective(state, only_set=only_set)
    if printed(found, output):
        return
    wide = output is Format.WIDE
    drawn = grid("variable", "value", "from", *(["meaning"] if wide else []))
    for group in GROUPS:
        rows = [each for each in found.settings if each.group == group.__doc__]
        for each in rows:
            drawn.add_row(each.variable, each.value or "-", each.source, *([each.meaning] if wide else []))
        if rows:
            drawn.add_section()
    show(drawn)
    for name, nearest in found.unknown.items():
        warn(no_setting(name, nearest))


def effective(state: Path | None, *, only_set: bool) -> EffectiveSettings:
    """Raises InvalidSettings if a value is unusable."""
    current = read_settings()
    of_state = exports((state / "env").read_text()) if state else {}
    rows = []
    for group in GROUPS:
        for name in settings_of(group):
            variable, field = variable_of(name), Settings.model_fields[name]
            source: Source = (
                "state directory" if variable in of_state else "environment" if variable in os.environ else "default"
            )
            if not only_set or source != "default":
                rows.append(
                    Effective(
                        group=group.__doc__ or "",
                        variable=variable,
                        value=as_text(getattr(current, name)),
                        source=source,
                        meaning=field.description or "",
                    )
                )
    return EffectiveSettings(settings=tuple(rows), unknown=unknown_variables(os.environ))
