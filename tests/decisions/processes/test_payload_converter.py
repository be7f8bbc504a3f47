"""Runs of workflows convert payloads by shared type adapters, and leave out fields that are not set."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from domain.model import Model
from engine.encryption import data_converter
from engine.settings import Settings


class Counted(Model):
    builds: ClassVar[list[str]] = []
    number: int = 0

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        cls.builds.append(str(source))
        return handler(source)


def test_a_type_is_built_once_for_all_runs_of_workflows() -> None:
    made = data_converter(Settings()).payload_converter_class
    payload = made().to_payload({"number": 3})  # an instance would complete the class
    Counted.builds.clear()
    assert [made().from_payload(payload, Counted).number for _run in range(5)] == [3] * 5
    assert len(Counted.builds) <= 1


class Nested(Model):
    labels: dict[str, str] = Field(default_factory=dict)
    inner: tuple[Counted, ...] = ()
    note: str = "none"


def test_fields_that_are_not_set_are_left_out_and_read_as_their_defaults() -> None:
    convert = data_converter(Settings()).payload_converter_class()
    value = Nested(inner=(Counted(), Counted(number=2))).model_copy(update={"note": ""})
    payload = convert.to_payload(value)
    assert json.loads(payload.data) == {"inner": [{}, {"number": 2}], "note": ""}
    assert convert.from_payload(payload, Nested) == value
