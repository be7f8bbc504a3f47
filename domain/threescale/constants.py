from __future__ import annotations

HITS = "hits"
APICAST = "apicast"
BUILT_IN = "builtin"
