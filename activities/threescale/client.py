"""The HTTP calls to one 3scale tenant (`domain/threescale/calls.py`).

Redirects are not followed, because they would send the token to another server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import httpx

from activities.threescale.call_limits import Guard
from activities.threescale.errors import no_answer, of_known_shape, refusal, unreadable
from activities.threescale.metrics import calling
from domain.schema import Json
from domain.threescale.calls import Read, Resource, SecretKey, Write, api_of, named
from domain.threescale.idempotent_creations import made_before, search_for
from domain.threescale.remote_state import answers_of, entries_of
from engine.errors import Absent
from engine.pauses import refuse_if_paused

_PER_PAGE = 500  # 3scale's maximum


class Tenant:
    def __init__(self, http: httpx.AsyncClient, url: str, token: str, guard: Guard) -> None:
        self._http = http
        self._url = url.rstrip("/")
        self._auth = httpx.BasicAuth("", token)
        self._guard = guard

    async def read(self, read: Read) -> object:
        """3scale's answer; None if the object does not exist. Raises Absent if the parent of a list does not exist."""
        try:
            if read.paged:
                return await self._pages(read.path, read.query)
            return await self._call("GET", read.path, query=read.query, api=api_of(read.resource))
        except Absent:
            if _may_be_absent(read):
                return None
            raise

    async def write(self, write: Write, texts: Mapping[SecretKey, str], *, repeated: bool = False) -> object:
        """3scale's answer; None if empty. `repeated` is True if an earlier attempt may have had an effect."""
        if repeated and write.key:
            made = made_before(write, await self.read(search_for(write)))
            if made is not None:
                return made
        fields = {**write.fields, **{name: texts[key] for name, key in write.secrets.items()}}
        if repeated and write.resource is Resource.KEY and await self._has_key(write.path, fields):
            return None  # it was created before, and 3scale would refuse a duplicate
        try:
            return await self._call(write.method, write.path, fields=fields, api=api_of(write.resource))
        except Absent:
            if write.method == "DELETE":
                return None
            raise

    async def _has_key(self, path: str, sent: Mapping[str, Json]) -> bool:
        there = answers_of(Resource.KEY.value, await self._pages(path, {}))
        return any(each.get("value") == sent["key"] for each in there)

    async def _pages(self, path: str, query: Mapping[str, str]) -> list[object]:
        entries: list[object] = []
        answer: object = None
        number, last = 1, 1
        while number <= last:
            page_query = {**query, "page": str(number), "per_page": str(_PER_PAGE)}
            before, answer = answer, await self._call("GET", path, query=page_query)
            if isinstance(answer, list) and answer == before:  # 3scale ignores the page number
                break
            with of_known_shape(named("GET", path, self._url)):
                entries += entries_of(answer)
            last = _last_page(answer, number)
            number += 1
        return entries

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        fields: Mapping[str, Json] | None = None,
        api: str = "/admin/api",
    ) -> object:
        call = named(method, path, self._url)
        if method != "GET":
            refuse_if_paused(call)
        sent = dict(fields) if fields else None
        with self._guard.calling(), calling(method, self._url) as request:
            try:
                answer = await self._http.request(
                    method,
                    f"{self._url}{api}/{path}.json",
                    params=dict(query or {}),
                    json=sent,
                    auth=self._auth,
                    follow_redirects=False,
                )
            except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:  # UnicodeError: some host names
                raise no_answer(call, error) from None
            request.status = answer.status_code
            if not answer.is_success:
                raise refusal(call, answer.status_code, answer.text, answer.headers)
        if method != "GET" and not answer.content:
            return None
        try:
            body: object = answer.json()
        except ValueError:
            raise unreadable(call, answer.text) from None
        if method == "GET" and body is None:  # None would mean that the object does not exist
            raise unreadable(call, answer.text)
        return body


class Connections:
    def __init__(self, timeout_seconds: float, *, verify: bool = True) -> None:
        limits = httpx.Limits(max_connections=200, max_keepalive_connections=50)
        self.http = httpx.AsyncClient(timeout=timeout_seconds, limits=limits, verify=verify)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.aclose()


def _may_be_absent(read: Read) -> bool:
    """Whether a 404 means that the object does not exist. For a list, a 404 means that the parent does not exist."""
    return bool(read.of and read.path.endswith(f"/{read.of}")) or read.path.endswith(("/find", "/latest"))


def _last_page(answer: object, number: int) -> int:
    """The number of the last page, as far as page `number` shows."""
    if isinstance(answer, list):
        # Lists of backend usages state no number of pages. The server's page size is unknown, but a full page has more
        # than one entry. So a page with at most one entry is the last page.
        return number + (len(answer) > 1)
    metadata = answer.get("metadata") if isinstance(answer, dict) else None
    pages = metadata.get("total_pages") if isinstance(metadata, dict) else None
    return pages if isinstance(pages, int) else 1
