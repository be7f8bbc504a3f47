"""The document of an ActiveDoc or OpenAPI, from the only key of a Secret or from a URL.

A failed fetch is retried and does not make the object Invalid. An unreadable document makes it Invalid. 3scale gets
every ActiveDoc as JSON.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime, timedelta

from domain.decision import Decision, earliest
from domain.model import Model
from domain.threescale.conditions import SyncState
from domain.threescale.faults import Fault
from domain.threescale.observed import Blocker, invalid
from domain.threescale.open_api_document import Unreadable, parsed, read_api
from domain.threescale.resources.shared import Document

FETCH_EVERY = timedelta(minutes=5)
NOT_FOUND = "Secret not found"
NOT_ONE_KEY = "Secret was empty or contains too many fields. Only one is required."


class Text(Model):
    body: str = ""
    version: str = ""
    blocker: Blocker | None = None


def text_in_secret(path: str, namespace: str, name: str, data: Mapping[str, str] | None, version: str = "") -> Text:
    """`path` is the field with the reference, such as `spec.openapiRef`; `data` is None if there is no such Secret."""
    waits_for = (f"Secret/{namespace}/{name}",)
    if data is not None and len(data) == 1:
        (body,) = data.values()
        return Text(body=body, version=version)
    fault = Fault(path=f"{path}.secretRef", value=name, detail=NOT_FOUND if data is None else NOT_ONE_KEY)
    state = SyncState.WAITING if data is None else SyncState.INVALID
    return Text(blocker=Blocker(state=state, message=str(fault), waits_for=waits_for))


def text_at(body: str) -> Text:
    return Text(body=body, version=hashlib.sha256(body.encode()).hexdigest())


def as_sent(field: str, place: str, text: Text) -> Text:
    if text.blocker is not None:
        return text
    try:
        read_api(text.body)  # only to check it, within limits of size and depth
        body = json.dumps(parsed(text.body), default=str)
    except Unreadable as problem:
        fault = Fault(path=field, value=place, detail=str(problem))
        return Text(blocker=invalid(str(fault)))
    return Text(body=body, version=hashlib.sha256(body.encode()).hexdigest()[:24])


def fetched_again(decision: Decision, document: Document, now: datetime) -> Decision:
    """Add a deadline for the next fetch if the document is at a URL, because a change at a URL causes no event."""
    if not document.url:
        return decision
    deadline = earliest([decision.deadline, now + FETCH_EVERY])
    return decision.model_copy(update={"deadline": deadline, "at_deadline": "observe again"})
