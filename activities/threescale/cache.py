"""The informer cache of the 3scale kinds. Objects are found by the name under which others refer to them, by the names
that they refer to, by their name in 3scale, or by their id there.

Lookups skip objects that cannot be parsed. Secrets are not cached: a worker has no right to list them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeVar

from domain.custom_resources import custom_resources
from domain.identity import Kind
from domain.reading import Malformed, read
from domain.resource import CustomResource
from domain.threescale import CUSTOM_KINDS
from domain.threescale.reference_names import called, known_as, refers_to
from domain.threescale.remote_ids import remembered_id
from domain.threescale.resources.shared import RemoteResource
from engine.errors import Unavailable
from engine.kube import KubeApi
from engine.kube.informer_cache import InformerCache, Store, reached
from engine.kube.json import JsonObject, text
from engine.kube.reflector import Followed

# In seconds; longer than any list takes. If it is exceeded, the API server denies the list or is unavailable.
LISTED = 60.0

R = TypeVar("R", bound=CustomResource)
Names = Callable[[CustomResource], Iterable[str]]

_MODELS = {model.kind_of.name: model for model in custom_resources() if model.kind_of in CUSTOM_KINDS}
_NAME, _REFERENCE, _CALLED, _ID = "name", "reference", "called", "id"
_INDEXES: Mapping[str, Names] = {
    _NAME: known_as,
    _REFERENCE: refers_to,
    _CALLED: lambda each: filter(None, [called(each)]),
    _ID: lambda each: [str(id_)] if isinstance(each, RemoteResource) and (id_ := remembered_id(each)) else [],
}


class ThreescaleCache(InformerCache):
    def __init__(self, api: KubeApi, store: Store) -> None:
        self._models: dict[str, tuple[str, CustomResource | None]] = {}  # by uid: version and parsed object
        super().__init__(api, [store.follow(Followed(kind), self._indexes(kind)) for kind in CUSTOM_KINDS])
        for mirror in self.mirrors.values():
            mirror.listen(self._forget)

    async def reached(self, seen: Mapping[str, str]) -> None:
        """Wait until every kind is listed and has reached its version in `seen`. If a stream hangs, the kinds are
        listed from the API server. Raises `Unavailable` if a kind cannot be listed.
        """
        try:
            async with asyncio.timeout(LISTED):
                for mirror in self.mirrors.values():
                    await mirror.settled()
        except TimeoutError:
            missing = {name: mirror.trouble for name, mirror in self.mirrors.items() if not mirror.listed}
            unlisted = "; ".join(
                f"{name}: {trouble or 'the first list is in progress'}" for name, trouble in missing.items()
            )
            raise Unavailable(f"the informer cache is incomplete: {unlisted}") from None
        if not await reached(self.mirrors.values(), seen):
            for mirror in self.mirrors.values():
                await mirror.refresh(seen.get(mirror.followed.kind.name, ""))

    def named(self, model: type[R], name: str) -> tuple[R, ...]:
        """The objects of a kind with this reference name (`known_as`)."""
        return self._find(model, _NAME, name)

    def get(self, model: type[R], namespace: str, name: str) -> R | None:
        found = self.mirrors[model.kind_of.name].get(namespace, name)
        resource = self._read(model.kind_of, found) if found is not None else None
        return resource if isinstance(resource, model) else None

    def referring(self, model: type[R], name: str) -> tuple[R, ...]:
        return self._find(model, _REFERENCE, name)

    def siblings(self, resource: R) -> tuple[R, ...]:
        """The other objects with the same name in 3scale, in any tenant."""
        name = called(resource)
        found = self._find(type(resource), _CALLED, name) if name else ()
        return tuple(each for each in found if each.metadata.uid != resource.metadata.uid)

    def having(self, model: type[R], id_: int) -> tuple[R, ...]:
        return self._find(model, _ID, str(id_)) if id_ else ()

    def everything(self, *models: type[CustomResource]) -> list[CustomResource]:
        kinds = [model.kind_of for model in models]
        found = [self._read(kind, each) for kind in kinds for each in self.mirrors[kind.name].all()]
        return [each for each in found if each is not None]

    def _find(self, model: type[R], index: str, name: str) -> tuple[R, ...]:
        found = self.mirrors[model.kind_of.name].find(index, name)
        return tuple(each for obj in found if isinstance(each := self._read(model.kind_of, obj), model))

    def _indexes(self, kind: Kind) -> dict[str, Callable[[JsonObject], Iterable[str]]]:
        return {index: partial(self._names, kind, names) for index, names in _INDEXES.items()}

    def _names(self, kind: Kind, names: Names, obj: JsonObject) -> Iterable[str]:
        resource = self._read(kind, obj)
        return names(resource) if resource is not None else ()

    def _read(self, kind: Kind, obj: JsonObject) -> CustomResource | None:
        uid, version = text(obj, "metadata", "uid"), text(obj, "metadata", "resourceVersion")
        known = self._models.get(uid)
        if known is None or known[0] != version:
            found = read(_MODELS[kind.name], obj)
            known = self._models[uid] = (version, None if isinstance(found, Malformed) else found)
        return known[1]

    def _forget(self, before: JsonObject | None, after: JsonObject | None) -> None:
        uid = text(before or {}, "metadata", "uid")
        if text(after or {}, "metadata", "uid") != uid:
            self._models.pop(uid, None)
