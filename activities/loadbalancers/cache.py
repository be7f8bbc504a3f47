"""The informer cache of LoadBalancers, sets and machines, indexed by their labels.

A pass waits until the cache has reached the resourceVersions named in its lifecycle's wakes. If a watch does not work,
the pass reads from the API server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from domain.identity import Key, Kind
from domain.loadbalancers import CUSTOM_KINDS
from domain.resource import CustomResource
from engine.kube import KubeApi
from engine.kube.informer_cache import InformerCache, Mirror, Store, reached
from engine.kube.json import JsonObject, mapping, text
from engine.kube.reflector import Followed, newer

R = TypeVar("R", bound=CustomResource)

_LABEL = "label"
Label = tuple[str, str, str]  # namespace, name and value; for all objects of a namespace, name and value are empty


def _labels(obj: JsonObject) -> Iterable[Label]:
    namespace = text(obj, "metadata", "namespace")
    yield (namespace, "", "")
    for name, value in mapping(obj, "metadata", "labels").items():
        if isinstance(value, str):
            yield (namespace, name, value)


class LoadBalancerCache(InformerCache):
    """Without a store, all reads go to the API server."""

    def __init__(self, api: KubeApi, store: Store | None = None) -> None:
        super().__init__(api, [store.follow(Followed(kind), {_LABEL: _labels}) for kind in CUSTOM_KINDS if store])

    async def view(self, seen: Mapping[str, str], *, fresh: bool) -> View:
        return View(self, fresh=fresh or not await reached(self.mirrors.values(), seen))

    def mirror(self, kind: Kind) -> Mirror | None:
        """The kind's part of the cache; None if it may be outdated."""
        found = self.mirrors.get(kind.name)
        return found if found is not None and found.listed and not found.trouble else None

    def wrote(self, writer: Key, kind: Kind, answer: JsonObject) -> None:
        self.learn(kind, answer)

    async def list(self, kind: Kind, namespace: str, labels: Mapping[str, str]) -> Iterable[JsonObject]:
        selector = ",".join(f"{name}={value}" for name, value in labels.items())
        return (await self._api.list(kind, namespace, label_selector=selector)).items


@dataclass(frozen=True)
class View:
    cache: LoadBalancerCache
    fresh: bool

    async def own(self, model: type[R], key: Key, version: str) -> R | None:
        """The object with the key's uid, at this version or newer; None if it does not exist."""
        found = self._known(model.kind_of, key.namespace, key.name)
        stale = found is not None and version and newer(version, text(found, "metadata", "resourceVersion"))
        if found is None or stale or text(found, "metadata", "uid") != key.uid:
            found = await self.cache.fresh(model.kind_of, key.namespace, key.name)
        return model.model_validate(found) if found and text(found, "metadata", "uid") == key.uid else None

    async def get(self, model: type[R], namespace: str, name: str) -> R | None:
        known = self._known(model.kind_of, namespace, name)
        found = known or await self.cache.fresh(model.kind_of, namespace, name)
        return None if found is None else model.model_validate(found)

    async def all(self, model: type[R], namespace: str, labels: Mapping[str, str]) -> tuple[R, ...]:
        mirror = None if self.fresh else self.cache.mirror(model.kind_of)
        if mirror is None:
            found = await self.cache.list(model.kind_of, namespace, labels)
        else:
            wanted = [(namespace, *label) for label in labels.items()] or [(namespace, "", "")]
            rarest = min(wanted, key=lambda label: mirror.count(_LABEL, label))  # other labels may be on every object
            found = mirror.find(_LABEL, rarest)
            found = [each for each in found if labels.items() <= mapping(each, "metadata", "labels").items()]
        return tuple(model.model_validate(each) for each in found)

    def _known(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        mirror = None if self.fresh else self.cache.mirror(kind)
        return mirror.get(namespace, name) if mirror is not None else None
