"""The base of every model that crosses a process border.

Unknown fields are ignored and new fields need defaults: newer code reads carried state and activity inputs that older
code wrote. A stricter model breaks the replay of older runs.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        populate_by_name=True,
        extra="ignore",
        serialize_by_alias=True,
        # A process imports hundreds of models and uses few of them.
        defer_build=True,
    )


def build_models(base: type[BaseModel] = Model) -> None:
    """Build the validators of all imported models, in a process whose forks are to share them."""
    for each in base.__subclasses__():
        each.model_rebuild()
        build_models(each)
