"""The base of every model that crosses a border: frozen, by the field names of the other side.

Unknown fields are ignored and new fields get defaults, never the other way round: carried state and activity inputs are
read by newer code than wrote them (a stricter model would break the replay of older runs).
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """An immutable value; built by Python names, read and written by the aliases of the other side."""

    model_config = ConfigDict(
        frozen=True,
        populate_by_name=True,
        extra="ignore",
        serialize_by_alias=True,
        # Validators are built at first use: a process imports hundreds of models and uses some of them.
        defer_build=True,
    )
