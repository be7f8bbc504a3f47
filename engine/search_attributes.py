"""The search attributes that a Temporal namespace needs before a lifecycle starts in it, with types as Temporal's CLI
names them.
"""

from __future__ import annotations

from collections.abc import Mapping

SEARCH_ATTRIBUTE_TYPES: Mapping[str, str] = {
    "OpKind": "Keyword",
    "OpNamespace": "Keyword",
    "OpName": "Keyword",
    "OpPhase": "Keyword",
    "OpOwner": "Keyword",
    "OpWaitsFor": "KeywordList",
    "OpDeadline": "Datetime",
}
