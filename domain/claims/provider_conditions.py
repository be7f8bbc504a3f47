"""The condition `VarsAreTemplates` of a ResourceProvider whose vars depend on the template rules.

It informs administrators that `PERDURE_CLAIMS_OLDER_TEMPLATES` matters for the provider.
"""

from __future__ import annotations

from datetime import datetime

from domain.claims.evaluator_interface import Fault
from domain.claims.json_objects import JsonObject, object_at
from domain.claims.stalled_condition import with_fault
from domain.claims.templates.renderer import is_rendered_when_used

VARS_ARE_TEMPLATES = "VarsAreTemplates"
RENDERED, PLAIN_TEXT = "Rendered", "PlainText"

_MOST_NAMED = 5


def with_vars_condition(provider: JsonObject, now: datetime, *, newer: bool) -> JsonObject:
    """The provider's new status. The condition `VarsAreTemplates` is set if the provider's vars contain templates, else
    removed. `newer`: whether Poolboy 1.13's template rules apply.
    """
    named = sorted(name for name, value in object_at(provider, "spec", "vars").items() if is_rendered_when_used(value))
    fault = Fault(reason=RENDERED if newer else PLAIN_TEXT, message=_message(named, newer=newer)) if named else None
    return with_fault(object_at(provider, "status"), VARS_ARE_TEMPLATES, fault, now)


def _message(named: list[str], *, newer: bool) -> str:
    places = ", ".join(f"spec.vars.{name}" for name in named[:_MOST_NAMED])
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    if newer:
        return (
            f"Templates in {places}{more} are rendered where the variable is used, as in Poolboy 1.13 to 1.17. "
            "If they were written for Poolboy 1.12, which used them as plain text, "
            "set PERDURE_CLAIMS_OLDER_TEMPLATES=true."
        )
    return (
        f"Templates in {places}{more} are used as plain text, because PERDURE_CLAIMS_OLDER_TEMPLATES=true. "
        "If they were written for Poolboy 1.13 or later, which render them, remove that setting."
    )
