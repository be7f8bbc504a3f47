"""Parameters and pagination of the services that speak JSON.

A page token is an index, which stays valid while a list only grows at its end.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any, TypeVar

from localcloud.aws.wire import Refusal

T = TypeVar("T")


def parameters_of(body: str | bytes | None) -> dict[str, Any]:
    parsed = json.loads(body or "{}")
    return parsed if isinstance(parsed, dict) else {}


def page_of(entries: Sequence[T], size: int, token: str | None, unreadable: Refusal) -> tuple[Sequence[T], str | None]:
    """The page of a token (the first page if it is None), and the next token (None on the last page).

    Raises:
        Refusal: `unreadable`, if the token is invalid.
    """
    start = _index_of(token, unreadable)
    end = start + size
    following = base64.urlsafe_b64encode(str(end).encode()).decode() if end < len(entries) else None
    return entries[start:end], following


def _index_of(token: str | None, unreadable: Refusal) -> int:
    if not token:
        return 0
    try:
        index = int(base64.urlsafe_b64decode(token.encode()).decode())
    except ValueError:
        raise unreadable from None
    if index < 0:
        raise unreadable
    return index
