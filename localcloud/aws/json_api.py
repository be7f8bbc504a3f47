"""What the services that speak JSON share: the parameters of a call, and lists that are answered in pages.

A page's token is opaque to clients. Here it holds an index, which goes on meaning the same, since the emulator's lists
only ever grow at their end. How a service names its parameters, and what it says of a token that is none, is its own.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any, TypeVar

from localcloud.aws.wire import Refusal

T = TypeVar("T")


def parameters_of(body: str | bytes | None) -> dict[str, Any]:
    """The parameters in the body of a call; none where it holds no object."""
    parsed = json.loads(body or "{}")
    return parsed if isinstance(parsed, dict) else {}


def page_of(entries: Sequence[T], size: int, token: str | None, unreadable: Refusal) -> tuple[Sequence[T], str | None]:
    """The entries of the page that the token names, the first without one, and the next page's token if there is one.

    Raises:
        Refusal: `unreadable`, for a token that no page was given.
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
