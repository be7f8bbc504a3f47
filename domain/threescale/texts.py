"""Where the document of an ActiveDoc or OpenAPI comes from: the only key of a Secret, or an address.

`text_in_secret` says what a decision sees of a Secret, which is observed. A document at an address is asked for as
`Read(resource=Resource.TEXT, path=<address>)`: the pass fetches it (`activities/threescale/pages.py`), which is no call
of a tenant, and `text_at` is what the decision sees of it. A failed fetch is the refusal of that read: it is tried
again, and is no fault of the object.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from domain.threescale.active_doc import Text
from domain.threescale.calls import Read, Resource
from domain.threescale.conditions import Standing
from domain.threescale.observed import Blocker
from domain.threescale.resources.shared import Document
from domain.threescale.validation import Fault

NOT_FOUND = "Secret not found"
NOT_ONE_KEY = "Secret was empty or contains too many fields. Only one is required."


def text_in_secret(path: str, namespace: str, name: str, data: Mapping[str, str] | None, version: str = "") -> Text:
    """The document of a Secret.

    Args:
        path: the field that names the Secret, as `spec.openapiRef`.
        namespace: the Secret's.
        name: the Secret's.
        data: its texts by their keys; None if there is no such Secret.
        version: the Secret's resourceVersion.
    """
    waits_for = (f"Secret/{namespace}/{name}",)
    if data is not None and len(data) == 1:
        (body,) = data.values()
        return Text(body=body, version=version)
    fault = Fault(path=f"{path}.secretRef", value=name, detail=NOT_FOUND if data is None else NOT_ONE_KEY)
    standing = Standing.WAITING if data is None else Standing.INVALID
    return Text(blocker=Blocker(standing=standing, message=str(fault), waits_for=waits_for))


def text_at(body: str) -> Text:
    """The document of an address; its version is what it says."""
    return Text(body=body, version=hashlib.sha256(body.encode()).hexdigest())


def look_at(document: Document) -> Read | None:
    """What fetches a document of an address; None for one of a Secret."""
    return Read(resource=Resource.TEXT, path=document.url) if document.url else None
