"""Reads Secrets for a pass from the API server, each Secret once. The content does not outlive the pass.

Decisions get the Secrets' keys, and only the values that they compare: a tenant's address, an application's id,
documents, and values for a product's gateway.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from activities.threescale.tenant_addresses import Homes
from domain.built_in_kinds import API_MANAGER
from domain.resource import ObjectMeta
from domain.threescale.calls import SecretKey
from domain.threescale.document_sources import Text, text_in_secret
from domain.threescale.issuer_and_policy_secrets import SecretText
from domain.threescale.provider_account import (
    ADDRESS_KEY,
    DEFAULT_SECRET,
    SEED_SECRET,
    Installation,
    NoAccount,
    ProviderAccount,
    SecretView,
    provider_account,
)
from domain.threescale.resources.shared import ObjectReference
from engine.errors import Denied, unless_absent
from engine.kube import SECRET, JsonObject, KubeApi
from engine.kube.json import mapping, text


class Content(NamedTuple):
    values: Mapping[str, str]
    version: str
    meta: ObjectMeta = ObjectMeta()


class Secrets:
    def __init__(self, kube: KubeApi, homes: Homes) -> None:
        self._kube = kube
        self._homes = homes
        self._read: dict[tuple[str, str], Content | None] = {}
        self._noted: set[tuple[str, str]] = set()

    async def content(self, namespace: str, name: str) -> Content | None:
        place = (namespace, name)
        if place not in self._read:
            self._read[place] = await self._fetched(namespace, name) if name else None
        return self._read[place]

    async def text(self, key: SecretKey) -> str | None:
        content = await self.content(key.namespace, key.name)
        return content.values.get(key.key) if content else None

    async def there(self, keys: Iterable[SecretKey]) -> tuple[SecretKey, ...]:
        return tuple([key for key in keys if await self._may_be_there(key)])

    async def _may_be_there(self, key: SecretKey) -> bool:
        try:
            return await self.text(key) is not None
        except Denied:
            return True  # only the call that needs the value is refused

    async def texts(self, keys: Iterable[SecretKey]) -> tuple[SecretText, ...]:
        found = [(key, await self.content(key.namespace, key.name)) for key in keys]
        return tuple(
            SecretText(key=key, text=content.values[key.key], version=content.version)
            for key, content in found
            if content is not None and key.key in content.values
        )

    async def document(self, field: str, where: ObjectReference, namespace: str) -> Text:
        place = where.namespace or namespace
        content = await self.content(place, where.name)
        data, version = (content.values, content.version) if content else (None, "")
        return text_in_secret(field, place, where.name, data, version)

    async def write(self, namespace: str, name: str, values: Mapping[str, str]) -> None:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
        await self._kube.patch(SECRET, namespace, name, {"data": encoded})
        self._read.pop((namespace, name), None)

    async def label(self, namespace: str, name: str, labels: Mapping[str, str]) -> None:
        await self._kube.patch(SECRET, namespace, name, {"metadata": {"labels": dict(labels)}})
        self._read.pop((namespace, name), None)

    async def put(self, secret: JsonObject, *, exists: bool) -> None:
        namespace, name = text(secret, "metadata", "namespace"), text(secret, "metadata", "name")
        self._read.pop((namespace, name), None)
        if exists:
            await self._kube.patch(SECRET, namespace, name, _changeable(secret))
        else:
            await self._kube.create(SECRET, secret, namespace)

    async def may_put(self, secret: JsonObject) -> None:
        """Check by a dry run that the Secret can be written. Raises ApiError otherwise."""
        await self._kube.applied(SECRET, _changeable(secret), text(secret, "metadata", "namespace"))

    async def account(self, namespace: str, name: str) -> ProviderAccount | NoAccount:
        """The tenant of the Secret with this name; without a name, the default tenant of the namespace."""
        place = (namespace, name)
        found = await self._account(namespace, name)
        if place not in self._noted:  # a pass reads each Secret once, so later answers are as old as the first
            self._noted.add(place)
            self._homes.note(place, found.url)
        return found

    async def home(self, namespace: str, name: str) -> str:
        return self._homes.get((namespace, name)) or (await self.account(namespace, name)).url

    async def _account(self, namespace: str, named: str) -> ProviderAccount | NoAccount:
        chosen = await self.view(namespace, named or DEFAULT_SECRET)
        if chosen is not None or named:
            return provider_account(namespace, named, {chosen.name: chosen} if chosen else {})
        installation = await self._installation(namespace)
        seed = await self.view(namespace, SEED_SECRET) if installation else None
        return provider_account(namespace, "", {SEED_SECRET: seed} if seed else {}, installation)

    async def view(self, namespace: str, name: str) -> SecretView | None:
        content = await self.content(namespace, name)
        if content is None:
            return None
        values = content.values
        url, filled = values.get(ADDRESS_KEY, "").strip(), sorted(key for key, value in values.items() if value.strip())
        return SecretView(name=name, keys=tuple(filled), admin_url=url, version=content.version)

    async def _installation(self, namespace: str) -> Installation | None:
        listing = await unless_absent(self._kube.list(API_MANAGER, namespace))
        found = listing.items if listing else ()
        first = min(found, key=lambda each: text(each, "metadata", "name"), default=None)
        if first is None:
            return None
        return Installation(
            tenant_name=text(first, "spec", "tenantName") or "3scale",
            wildcard_domain=text(first, "spec", "wildcardDomain"),
        )

    async def _fetched(self, namespace: str, name: str) -> Content | None:
        found = await unless_absent(self._kube.get(SECRET, namespace, name))
        if found is None:
            return None
        values = {key: _decoded(str(value)) for key, value in mapping(found, "data").items()}
        meta = ObjectMeta.model_validate(mapping(found, "metadata"))
        return Content(values, meta.resource_version, meta)


def _changeable(secret: JsonObject) -> JsonObject:
    return {part: secret[part] for part in ("metadata", "stringData")}  # a Secret's type is immutable


def _decoded(value: str) -> str:
    """Binary data counts as empty, because 3scale accepts only text."""
    try:
        return base64.b64decode(value).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
