"""Links into Temporal's web UI. It keeps saved views in each browser, so a link carries its query with it."""

from __future__ import annotations

from urllib.parse import urlencode


def lifecycles_query(*areas: str) -> str:
    """The list filter that finds every lifecycle of these areas: each area's run on the task queue of its name."""
    if len(areas) == 1:
        return f"TaskQueue = '{areas[0]}'"
    return f"TaskQueue IN ({', '.join(repr(area) for area in areas)})"


def lifecycles_link(url: str, query: str) -> str:
    """The web UI's list of the workflows that a filter finds; `url` is the UI's address."""
    return f"{url}/namespaces/default/workflows?{urlencode({'query': query})}"
