"""Which templates come out differently though no event tells of it.

Merely because time passes, or by chance: those are rendered by the clock. Because they read what the pass that renders
them writes: those are rendered again by it. Judged by their text, and in doubt counted as dependent: a needless
rendering costs a fraction of a millisecond, a missed one leaves an environment running that should have stopped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# Names of time and of chance, as words: `creationTimestamp` and `lifespan_end_datetime` are none of them.
_CLOCK_OR_CHANCE = re.compile(
    r"\b(?:now|utcnow|today|timestamp|datetime|strgen|random|lipsum|timedelta_to_lifespan_end)\b"
)
# A filter or attribute whose name is itself computed may be any of them.
_BY_COMPUTED_NAME = re.compile(
    r"\|\s*(?:map|select|selectattr|reject|rejectattr|attr)\s*\(\s*(?:attribute\s*=\s*)?[^'\"\s]"
)
# All of claim and handle but what no pass over them writes.
_OWN_WRITES = re.compile(
    r"\bresource_(?:claim|handle)\b"
    r"(?!\s*\.\s*(?:metadata|meta|name|namespace|uid|guid|kind|annotations|labels|vars)\b)"
)
_TAGS = ("{{", "{%")


def depends_on_time(texts: Iterable[str]) -> bool:
    """Whether any of these templates may give another result later though nothing it sees has changed.

    Args:
        texts: Templates as they stand in the objects; texts without a tag are no templates. A condition's expression
            is given as the template it is rendered as (`condition_template`).
    """
    return any(_CLOCK_OR_CHANCE.search(text) or _BY_COMPUTED_NAME.search(text) for text in _templates(texts))


def reads_what_passes_write(texts: Iterable[str]) -> bool:
    """Whether any of these templates reads of claim or handle what a pass over them writes: statuses, lifespans."""
    return any(_OWN_WRITES.search(text) for text in _templates(texts))


def _templates(texts: Iterable[str]) -> Iterable[str]:
    return (text for text in texts if any(tag in text for tag in _TAGS))
