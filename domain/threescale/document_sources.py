"""The document of an ActiveDoc or OpenAPI, from the only key of a Secret or from a URL.

The pass fetches a document from a URL (`activities/threescale/document_download.py`). A failed fetch is retried and
does not make the object Invalid.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from domain.threescale.active_doc import Text
from domain.threescale.conditions import SyncState
from domain.threescale.observed import Blocker
from domain.threescale.spec_validation import Fault

NOT_FOUND = "Secret not found"
NOT_ONE_KEY = "Secret was empty or contains too many fields. Only one is required."


def text_in_secret(path: str, namespace: str, name: str, data: Mapping[str, str] | None, version: str = "") -> Text:
    """The document in a Secret. `path` is the field with the reference, such as `spec.openapiRef`; `data` is None if
    the Secret does not exist.
    """
    waits_for = (f"Secret/{namespace}/{name}",)
    if data is not None and len(data) == 1:
        (body,) = data.values()
        return Text(body=body, version=version)
    fault = Fault(path=f"{path}.secretRef", value=name, detail=NOT_FOUND if data is None else NOT_ONE_KEY)
    state = SyncState.WAITING if data is None else SyncState.INVALID
    return Text(blocker=Blocker(state=state, message=str(fault), waits_for=waits_for))


def text_at(body: str) -> Text:
    return Text(body=body, version=hashlib.sha256(body.encode()).hexdigest())
