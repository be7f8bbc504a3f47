"""The activities of Greetings. Each may die at any line and run again, so it looks up the ConfigMap before a write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack

from temporalio import activity

from activities.clients import Clients
from domain.identity import Key
from engine.errors import Absent
from engine.kube import CONFIG_MAP, JsonObject, KubeApi
from engine.kube.json import sequence, text
from engine.pauses import held
from engine.settings import Settings
from perdure_greeting import AREA, GREETING, OF_LABEL
from perdure_greeting.greeting import GreetingWorld, ObserveGreeting, ShowText
from perdure_greeting.resources import Greeting


async def activities(clients: Clients, stack: AsyncExitStack) -> Sequence[Callable[..., object]]:
    """All activities of the area, for the worker."""
    greetings = Greetings(clients.kube, clients.settings)
    return (greetings.observe, greetings.show)


class Greetings:
    """Reads Greetings, and reads and writes their ConfigMaps."""

    def __init__(self, kube: KubeApi, settings: Settings) -> None:
        self._kube = kube
        self._settings = settings

    @activity.defn(name=ObserveGreeting.activity)
    async def observe(self, look: ObserveGreeting) -> GreetingWorld:
        """The Greeting and the ConfigMap of its name."""
        key = look.key
        try:
            found = Greeting.model_validate(await self._kube.get(GREETING, key.namespace, key.name))
        except Absent:
            return GreetingWorld(key=key, exists=False)
        config_map = await self._config_map(key)
        return GreetingWorld(
            key=key,
            exists=found.metadata.uid == key.uid,
            hold=held(AREA, found.metadata.annotations, self._settings),
            greeting=found,
            shown=text(config_map, "data", "text") if config_map else None,
            taken=config_map is not None and not _is_of(key, config_map),
        )

    @activity.defn(name=ShowText.activity)
    async def show(self, action: ShowText) -> None:
        """Create, change or delete the ConfigMap; one with another owner stays unchanged."""
        key, found = action.key, await self._config_map(action.key)
        if found is not None and not _is_of(key, found):
            return
        if action.text is None:
            if found is not None:
                await self._kube.delete(CONFIG_MAP, key.namespace, key.name, uid=text(found, "metadata", "uid"))
        elif found is None:
            await self._kube.create(CONFIG_MAP, _config_map_of(key, action.text), key.namespace)
        else:
            patch, version = {"data": {"text": action.text}}, text(found, "metadata", "resourceVersion")
            await self._kube.patch(CONFIG_MAP, key.namespace, key.name, patch, resource_version=version)

    async def _config_map(self, key: Key) -> JsonObject | None:
        try:
            return await self._kube.get(CONFIG_MAP, key.namespace, key.name)
        except Absent:
            return None


def _is_of(key: Key, config_map: JsonObject) -> bool:
    return key.uid in (text(owner, "uid") for owner in sequence(config_map, "metadata", "ownerReferences"))


def _config_map_of(key: Key, content: str) -> JsonObject:
    owner = {"apiVersion": GREETING.api_version, "kind": GREETING.name, "name": key.name, "uid": key.uid}
    metadata = {"name": key.name, "labels": {OF_LABEL: key.name}, "ownerReferences": [owner]}
    return {"metadata": metadata, "data": {"text": content}}
