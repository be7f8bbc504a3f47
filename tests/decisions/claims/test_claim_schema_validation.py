"""Values validated by a provider's `openAPIV3Schema`: what passes, what is reported, and how a broken schema fails."""

from __future__ import annotations

from typing import Any

import pytest

from domain.claims.schema_validation import LONGEST_TEXT, SchemaError, violation

PERSON = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {"name": {"type": "string", "pattern": "^[a-z]+$"}, "age": {"type": "integer", "minimum": 1}},
}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({}, {"anything": [1, None]}),
        (PERSON, {"name": "ada", "age": 36}),
        ({"type": "string", "nullable": True}, None),
        ({"type": "string", "format": "date-time"}, "no moment at all"),
        ({"type": "integer", "maximum": 3}, 3),
        ({"type": "string", "x-form": "radio", "example": "a", "openApiV3Schema": 1}, "a"),
        ({"$ref": "#/definitions/name", "definitions": {"name": {"type": "string"}}}, "ada"),
    ],
    ids=["empty", "object", "nullable", "format", "bound", "unknown words", "local reference"],
)
def test_a_value_that_the_schema_allows_has_no_violation(schema: Any, value: Any) -> None:
    assert violation(schema, value) is None


@pytest.mark.parametrize(
    ("schema", "value", "first_line"),
    [
        (PERSON, {"age": 1}, "'name' is a required property"),
        (PERSON, {"name": "Ada"}, "'Ada' does not match '^[a-z]+$'"),
        (PERSON, {"name": "ada", "age": 0}, "0 is less than the minimum of 1"),
        (PERSON, {"name": "ada", "age": True}, "True is not of type 'integer'"),
        (PERSON, {"name": "ada", "pet": 1}, "Additional properties are not allowed ('pet' was unexpected)"),
        ({"type": "string"}, None, "None for not nullable"),
        # As draft 4 has it: a boolean beside the bound.
        ({"minimum": 3, "exclusiveMinimum": True}, 3, "3 is less than or equal to the minimum of 3"),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, [], "[] is not valid under any of the given schemas"),
    ],
)
def test_a_violation_is_reported_in_the_validators_words(schema: Any, value: Any, first_line: str) -> None:
    text = violation(schema, value)
    assert text is not None
    assert text.splitlines()[0] == first_line


def test_the_whole_text_names_the_place_and_the_value() -> None:
    assert violation(PERSON, {"name": "ada", "age": 0}) == (
        "0 is less than the minimum of 1\n"
        "\n"
        "Failed validating 'minimum' in schema['properties']['age']:\n"
        "    {'type': 'integer', 'minimum': 1}\n"
        "\n"
        "On instance['age']:\n"
        "    0"
    )


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        ({"type": "strin"}, "type: 'strin'"),
        ({"pattern": "("}, "pattern: '('"),
        ({"properties": {"a": {"required": True}}}, "properties/a/required: True"),
        ({"$ref": "#/definitions/gone"}, "'/definitions/gone' does not exist"),
        ({"$ref": "#"}, "RecursionError"),
        (True, "is not an object but true"),
        (["string"], "is not an object but"),
    ],
    ids=["type", "pattern", "required", "dangling reference", "endless reference", "boolean", "list"],
)
def test_a_broken_schema_is_an_error_of_its_own(schema: Any, names: str) -> None:
    with pytest.raises(SchemaError) as caught:
        violation(schema, {"a": {}} if isinstance(schema, dict) and "properties" in schema else "text")
    assert names in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_fault_in_a_part_that_no_value_reaches_is_ignored() -> None:
    assert violation({"properties": {"a": {"type": "strin"}}}, {"b": 1}) is None


def test_a_schema_fetches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(*_: Any, **__: Any) -> None:
        pytest.fail("a schema opened a connection")

    monkeypatch.setattr("socket.socket.connect", opened)
    with pytest.raises(SchemaError, match=r"127\.0\.0\.1"):
        violation({"$ref": "http://127.0.0.1:9/schema"}, {})


def test_a_huge_value_gives_a_bounded_text() -> None:
    text = violation({"type": "integer"}, "x" * 1_000_000)
    assert text is not None
    assert len(text) <= LONGEST_TEXT + 1


def test_the_order_of_the_schema_decides_which_violation_is_reported() -> None:
    name = {"properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    turned = {"properties": {"b": {"type": "string"}, "a": {"type": "string"}}}
    assert "On instance['a']" in str(violation(name, {"a": 1, "b": 2}))
    assert "On instance['b']" in str(violation(turned, {"a": 1, "b": 2}))
