"""The search attributes that a Temporal namespace needs before a lifecycle starts in it, in its CLI's words."""

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
