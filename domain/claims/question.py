from __future__ import annotations

from datetime import datetime

from domain.claims.domain_names import DomainNames
from domain.claims.json_objects import JsonObject
from domain.model import Model


class Question(Model):
    now: datetime
    names: DomainNames
    providers: dict[str, JsonObject] = {}
    newer: bool = False  # the template rules of Poolboy 1.13 and later
