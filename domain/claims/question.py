"""What every question to the evaluator has."""

from __future__ import annotations

from datetime import datetime

from domain.claims.domain_names import DomainNames
from domain.claims.objects import JsonObject
from domain.model import Model


class Question(Model):
    """The clock, the names under the domain, and the providers that may matter, by name."""

    now: datetime
    names: DomainNames
    providers: dict[str, JsonObject] = {}
    newer: bool = False  # the template rules of Poolboy 1.13 and later
