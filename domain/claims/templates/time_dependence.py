"""Whether templates' results may change without an event, judged by their text.

In doubt, they may change: a needless rendering is cheap, but a missed rendering keeps an environment running too long.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# Whole words: `creationTimestamp` and `lifespan_end_datetime` do not match.
_CLOCK_OR_CHANCE = re.compile(
    r"\b(?:now|utcnow|today|timestamp|datetime|strgen|random|lipsum|timedelta_to_lifespan_end)\b"
)
# A filter or attribute whose name is computed may be one of these.
_BY_COMPUTED_NAME = re.compile(
    r"\|\s*(?:map|select|selectattr|reject|rejectattr|attr)\s*\(\s*(?:attribute\s*=\s*)?[^'\"\s]"
)
# The claim or handle, except their fields that no pass writes.
_OWN_WRITES = re.compile(
    r"\bresource_(?:claim|handle)\b"
    r"(?!\s*\.\s*(?:metadata|meta|name|namespace|uid|guid|kind|annotations|labels|vars)\b)"
)
_OBJECTS = re.compile(r"\bresource_(?:claim|handle)\b")
_TAGS = ("{{", "{%")


def depends_on_time(texts: Iterable[str]) -> bool:
    """Whether a result may change by time or chance. Convert conditions with `condition_template` beforehand."""
    return any(_CLOCK_OR_CHANCE.search(text) or _BY_COMPUTED_NAME.search(text) for text in _templates(texts))


def reads_what_passes_write(texts: Iterable[str]) -> bool:
    return any(_OWN_WRITES.search(text) for text in _templates(texts))


def reads_claim_or_handle(texts: Iterable[str]) -> bool:
    return any(_OBJECTS.search(text) for text in _templates(texts))


def _templates(texts: Iterable[str]) -> Iterable[str]:
    return (text for text in texts if any(tag in text for tag in _TAGS))
