"""What the API server sends is read, also where one object of a list is nested deeper than Python can read."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from engine.kube.json import MOST_NESTED, TOO_DEEP, parsed


def nested(levels: int, opened: str, closed: str) -> str:
    return opened * levels + '"]}\\" [{"' + closed * levels


@pytest.mark.parametrize(("opened", "closed"), [('{"a":', "}"), ("[", "]"), ('[{"}": ', "}]")])
def test_of_an_object_nested_beyond_reason_all_is_read_but_what_lies_deepest(opened: str, closed: str) -> None:
    deep = nested(10_000, opened, closed)
    body = f'{{"items": [{{"spec": "fine \\"[{{"}}, {{"spec": {deep}, "status": [1]}}, {{"spec": [[]]}}]}}'
    with pytest.raises(RecursionError):
        json.loads(body)

    found = cast("dict[str, Any]", parsed(body.encode()))
    first, second, third = found["items"]
    assert (first, third) == ({"spec": 'fine "[{'}, {"spec": [[]]})
    assert second["status"] == [1]
    text = json.dumps(second["spec"])
    assert TOO_DEEP in text
    assert text.count("[") + text.count("{") in range(MOST_NESTED - 5, MOST_NESTED + 1)


def test_readable_json_is_read_unchanged() -> None:
    body = nested(MOST_NESTED + 100, '{"a":', "}")
    assert parsed(body.encode()) == json.loads(body)


def test_a_text_that_is_no_json_is_refused() -> None:
    with pytest.raises(ValueError, match="Expecting"):
        parsed(b'{"a": }')
    with pytest.raises(ValueError, match="Expecting"):
        parsed(nested(10_000, "[", "").encode())
