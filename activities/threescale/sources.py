"""Documents of APIs where their objects say they are: under the only key of a Secret, or at an address.

They are written in JSON or YAML and handed on as JSON. What cannot be read makes its object invalid; what is not there,
or cannot be fetched now, is waited for. A document is fetched as long as its object is looked at, within limits of size
and time.
"""

from __future__ import annotations

import hashlib
import json

import httpx
import yaml

from activities.threescale.secrets import Secrets
from domain.threescale.active_doc import Text
from domain.threescale.conditions import Standing
from domain.threescale.resources.shared import Document
from domain.threescale.work import Hindrance

LARGEST = 4 * 1024 * 1024
LONGEST_SECONDS = 20.0
_NOT_ONE = "Secret was empty or contains too many fields. Only one is required."


class UnreadableDocumentError(Exception):
    """What the document lacks, in words."""


class _Loader(yaml.SafeLoader):
    """YAML without aliases, a few of which can stand for more than any memory holds."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("it has aliases")
        return super().compose_node(parent, index)


class Sources:
    """Reads documents; `http` is for addresses that are nobody's tenant."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def text(self, where: Document, namespace: str, secrets: Secrets) -> Text:
        """The document, or why it cannot be read."""
        if where.secret_ref is not None:
            return await self._in_secret(where.secret_ref.namespace or namespace, where.secret_ref.name, secrets)
        return await self._at(where.url or "")

    async def _in_secret(self, namespace: str, name: str, secrets: Secrets) -> Text:
        content = await secrets.content(namespace, name)
        if content is None:
            waits_for = (f"Secret/{namespace}/{name}",)
            return Text(hindrance=Hindrance(standing=Standing.WAITING, message="Secret not found", waits_for=waits_for))
        if len(content.values) != 1:
            return _invalid(_NOT_ONE)
        return _document(next(iter(content.values.values())))

    async def _at(self, url: str) -> Text:
        try:
            return _document(await self._fetched(url))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            why = str(error) or type(error).__name__
            return Text(hindrance=Hindrance(standing=Standing.WAITING, message=f"{url} cannot be fetched: {why}"))

    async def _fetched(self, url: str) -> str:
        body = bytearray()
        async with self._http.stream("GET", url, timeout=LONGEST_SECONDS, follow_redirects=False) as answer:
            answer.raise_for_status()
            async for chunk in answer.aiter_bytes():
                body += chunk
                if len(body) > LARGEST:
                    raise httpx.TransportError(f"more than {LARGEST} bytes")
        return body.decode(errors="replace")


def as_json(text: str) -> str:
    """The document as JSON.

    Raises:
        UnreadableDocumentError: it is no OpenAPI document.
    """
    try:
        read = json.loads(text)
    except ValueError:
        try:
            read = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            raise UnreadableDocumentError(f"neither JSON nor YAML: {type(error).__name__}") from None
    if not isinstance(read, dict) or not ({"openapi", "swagger"} & set(read)):
        raise UnreadableDocumentError("no OpenAPI document: it has neither `openapi` nor `swagger`")
    try:
        return json.dumps(read, default=str)
    except (ValueError, RecursionError, TypeError) as error:
        raise UnreadableDocumentError(f"it cannot be written as JSON: {type(error).__name__}") from None


def _document(text: str) -> Text:
    try:
        body = as_json(text)
    except UnreadableDocumentError as error:
        return _invalid(str(error))
    return Text(body=body, version=hashlib.sha256(body.encode()).hexdigest()[:24])


def _invalid(message: str) -> Text:
    return Text(hindrance=Hindrance(standing=Standing.INVALID, message=f"Invalid OAS: {message}"))
