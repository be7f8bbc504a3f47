"""Links into Temporal's web UI. Saved views exist only in one browser, so each link contains its query."""

from __future__ import annotations

from urllib.parse import urlencode


def lifecycles_query(*areas: str) -> str:
    if len(areas) == 1:
        return f"TaskQueue = '{areas[0]}'"
    return f"TaskQueue IN ({', '.join(repr(area) for area in areas)})"


def lifecycles_link(url: str, query: str) -> str:
    return f"{url}/namespaces/default/workflows?{urlencode({'query': query})}"
