"""API documents from the only key of a Secret, or from a URL.

3scale gets every ActiveDoc as JSON. An unreadable document makes the object Invalid. If a document is missing or cannot
be fetched now, the object waits for the document.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json

import httpx

from activities.threescale.document_download import fetch
from activities.threescale.secrets import Secrets
from domain.threescale.active_doc import Text
from domain.threescale.document_sources import text_at, text_in_secret
from domain.threescale.observed import invalid, waiting
from domain.threescale.open_api_document import Unreadable, parsed, read_api
from domain.threescale.resources.shared import ObjectReference
from domain.threescale.spec_validation import Fault
from engine.errors import ApiError


class Sources:
    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def fetched(self, url: str) -> str:
        return await fetch(self._http, url)

    async def in_secret(self, field: str, where: ObjectReference, namespace: str, secrets: Secrets) -> Text:
        """The document in a Secret, unchanged. `field` is the path of the reference, for messages."""
        place = where.namespace or namespace
        content = await secrets.content(place, where.name)
        data, version = (content.values, content.version) if content else (None, "")
        return text_in_secret(field, place, where.name, data, version)

    async def at(self, url: str) -> Text:
        try:
            return text_at(await self.fetched(url))
        except ApiError as error:
            return Text(blocker=waiting(error.message))


async def understood(text: str) -> None:
    """Parse in a thread, so that a long document does not block other passes; `read_api` caches the result."""
    with contextlib.suppress(Unreadable):
        await asyncio.to_thread(read_api, text)


async def as_sent(field: str, text: Text) -> Text:
    if text.blocker is not None:
        return text
    try:
        body = await asyncio.to_thread(_json, text.body)
    except Unreadable as problem:
        fault = Fault(path=field, value=None, detail=str(problem))
        return Text(blocker=invalid(str(fault)))
    return Text(body=body, version=hashlib.sha256(body.encode()).hexdigest()[:24])


def _json(text: str) -> str:
    read_api(text)  # only to check it, within limits of size and depth
    return json.dumps(parsed(text), default=str)
