"""The common part of questions to the evaluator."""

from __future__ import annotations

from datetime import datetime

from domain.claims.domain_names import DomainNames
from domain.claims.objects import JsonObject
from domain.model import Model


class Question(Model):
    """The time, the names with the domain, and potentially relevant providers by name."""

    now: datetime
    names: DomainNames
    providers: dict[str, JsonObject] = {}
    newer: bool = False  # the template rules of Poolboy 1.13 and later
