"""The ground of one test: a namespace for its users, and what its name ends in the operator's namespace.

All providers, pools and handles live in the operator's namespace, so the name of whatever a test makes there ends in
the tag of its ground, and nothing has to be gone before the next test begins. What handles manage are Gadgets, a kind
of the tests' own with a status of its own, and ConfigMaps.

Everything is followed by watches, so that waiting looks at each change when it comes, and a reaction is measured from
what the API server said.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest
import yaml

from claims.claims_objects import NAMES, Json, deleting, described, link, look, version, without_noise
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE, RESOURCE_POOL, RESOURCE_POOL_SCALING, RESOURCE_PROVIDER
from domain.identity import Kind
from engine.errors import Absent, Conflict
from engine.kube import CONFIG_MAP, EVENT, NAMESPACE, KubeApi
from localcloud.objects import Objects

OPERATOR_NAMESPACE = "poolboy"
PERSON = "kubectl"  # the field manager of people's writes
GADGET_GROUP = "lab.perdure.dev"
GADGET = Kind(name="Gadget", group=GADGET_GROUP, version="v1", plural="gadgets", area="")

# How long a test waits before it calls something missing: long, since a machine may be slow or do other work. How quick
# the product is on a quiet one is a benchmark's to say (`perdure bench claims`). What is looked at again without an
# event is observed far more seldom, so that the effect of an event differs from that of the next observation.
PROMPT = 60.0
PATIENT = 60.0
CAUGHT_UP = 15.0

FOLLOWED = (RESOURCE_CLAIM, RESOURCE_HANDLE, RESOURCE_POOL, RESOURCE_POOL_SCALING, GADGET, CONFIG_MAP)


class Ground:
    """One test's part of the deployment."""

    def __init__(self, kube: KubeApi, objects: Objects, namespace: str, others: Ground | None = None) -> None:
        self.kube = kube
        self.objects = objects
        self.namespace = namespace
        self._others = others
        self.tag = namespace.rpartition("-")[2]

    def named(self, word: str) -> str:
        """The word as the name of something of this ground in the operator's namespace."""
        return f"{word}-{self.tag}"

    # What manifests consist of.

    def gadget(self, name: str = "", **fields: Any) -> Json:
        """A definition of a Gadget on this ground."""
        metadata = {"namespace": self.namespace, **fields.pop("metadata", {})}
        named = {**metadata, "name": name} if name else metadata
        return {"apiVersion": GADGET.api_version, "kind": GADGET.name, "metadata": named, **fields}

    def config_map(self, **data: str) -> Json:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": self.namespace}, "data": data}

    def provider_reference(self, word: str) -> Json:
        return link("ResourceProvider", OPERATOR_NAMESPACE, self.named(word))

    def entry(self, provider: str, name: str = "", **template: Any) -> Json:
        """An entry of a handle's or pool's resource list."""
        named = {"name": name} if name else {}
        return {**named, "provider": self.provider_reference(provider), **({"template": template} if template else {})}

    # What people make.

    async def provider(self, word: str = "lab", **spec: Any) -> str:
        """A ResourceProvider; without more words it makes a Gadget that is ready as soon as it is there."""
        if not spec:
            spec = {"override": self.gadget(), "healthCheck": "true", "readinessCheck": "true"}
        await self.create(RESOURCE_PROVIDER, {"metadata": {"name": self.named(word)}, "spec": spec})
        return self.named(word)

    async def ask(
        self,
        name: str = "mine",
        provider: str = "",
        *,
        values: Json | None = None,
        annotations: Json | None = None,
        labels: Json | None = None,
        **spec: Any,
    ) -> Json:
        """A ResourceClaim, by provider or else by what `spec` lists."""
        if provider:
            given = {} if values is None else {"parameterValues": values}
            spec["provider"] = {"name": self.named(provider), **given}
        metadata = {"name": name, "annotations": annotations or {}, "labels": labels or {}}
        return await self.create(RESOURCE_CLAIM, {"metadata": metadata, "spec": spec})

    async def pool(self, word: str = "pool", **spec: Any) -> str:
        await self.create(RESOURCE_POOL, {"metadata": {"name": self.named(word)}, "spec": spec})
        return self.named(word)

    async def make_handle(self, word: str, *, labels: Json | None = None, **spec: Any) -> str:
        """A handle made by hand, with nothing that the operator would have put on it."""
        name = f"guid-{self.named(word)}"
        await self.create(RESOURCE_HANDLE, {"metadata": {"name": name, "labels": labels or {}}, "spec": spec})
        return name

    async def create(self, kind: Kind, obj: Json) -> Json:
        """As `kubectl create` makes it."""
        return await self.kube.create(kind, obj, self._where(kind), field_manager=PERSON)

    async def edit(self, kind: Kind, name: str, patch: Json, *, status: bool = False) -> Json:
        """A merge patch, as `kubectl patch` sends it; what is seen from then on is not older."""
        where, part = self._where(kind), "status" if status else ""
        edited = await self.kube.patch(kind, where, name, patch, subresource=part, field_manager=PERSON)
        if kind in FOLLOWED:
            await self.objects.until(
                lambda: not self.one(kind, name) or version(self.one(kind, name)) >= version(edited)
            )
        return edited

    async def edit_claim(self, name: str = "mine", **spec: Any) -> None:
        await self.edit(RESOURCE_CLAIM, name, {"spec": spec})

    async def choose(self, name: str = "mine", **values: Any) -> None:
        """Change parameter values of a claim; None removes one."""
        await self.edit_claim(name, provider={"parameterValues": values})

    async def edit_provider(self, word: str = "lab", **spec: Any) -> None:
        await self.edit(RESOURCE_PROVIDER, self.named(word), {"spec": spec})

    async def label(self, kind: Kind, name: str, **labels: str | None) -> None:
        """Set labels under the operator's domain, by the last part of their keys; None removes one."""
        patch = {f"{NAMES.domain}/{key.replace('_', '-')}": value for key, value in labels.items()}
        await self.edit(kind, name, {"metadata": {"labels": patch}})

    async def report(self, gadget: str, **status: Any) -> None:
        """Write a Gadget's status, as its own controller would."""
        await self.edit(GADGET, gadget, {"status": status}, status=True)

    async def delete(self, kind: Kind, name: str) -> None:
        await self.kube.delete(kind, self._where(kind), name)

    # What is there.

    def one(self, kind: Kind, name: str) -> Json:
        """An object, empty if there is none."""
        return self.objects.one(kind, self._where(kind), name) or {}

    def claim(self, name: str = "mine") -> Json:
        return self.one(RESOURCE_CLAIM, name)

    def claims(self) -> list[Json]:
        return self.objects.of(RESOURCE_CLAIM, self.namespace)

    def handle(self, name: str = "mine") -> Json:
        """The handle that the claim names."""
        return self.one(RESOURCE_HANDLE, self.handle_name(name))

    def handle_name(self, name: str = "mine") -> str:
        return str(look(self.claim(name), "status.resourceHandle.name") or "")

    def handles(self) -> list[Json]:
        """This ground's handles, oldest first."""
        found = (obj for obj in self.objects.of(RESOURCE_HANDLE, OPERATOR_NAMESPACE) if self._is_ours(obj))
        return sorted(found, key=lambda obj: (look(obj, "metadata.creationTimestamp"), look(obj, "metadata.name")))

    def free_handles(self) -> list[Json]:
        return [obj for obj in self.handles() if not look(obj, "spec.resourceClaim") and not deleting(obj)]

    def gadgets(self) -> list[Json]:
        return self.objects.of(GADGET, self.namespace)

    def resource(self, name: str = "mine", index: int = 0) -> Json:
        """The Gadget of a claim's handle at this index, empty if there is none."""
        reference = look(self.handle(name), f"status.resources.{index}.reference.name")
        return self.one(GADGET, reference) if reference else {}

    async def events(self, kind: Kind, name: str) -> str:
        """What Kubernetes Events say about an object, in one text."""
        selector = f"involvedObject.kind={kind.name},involvedObject.name={name}"
        listing = await self.kube.list(EVENT, self._where(kind), field_selector=selector)
        return "\n".join(f"{look(event, 'reason')}: {look(event, 'message')}" for event in listing.items)

    # Waiting.

    async def until(self, what: str, condition: Callable[[], object], seconds: float = PATIENT) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self.objects.until(lambda: bool(condition()))
        except TimeoutError:
            pytest.fail(f"not within {seconds:g} s: {what}\n{self.describe()}", pytrace=True)
        await self._caught_up()

    async def _caught_up(self) -> None:
        """Kinds are followed one by one: wait until each shows what is there now, so that they can be compared.

        What comes and goes meanwhile may never be seen; it is not waited for long.
        """
        kinds = (RESOURCE_CLAIM, RESOURCE_HANDLE, RESOURCE_POOL, GADGET)
        with suppress(TimeoutError):
            async with asyncio.timeout(CAUGHT_UP):
                await asyncio.gather(*(self._caught_up_with(kind) for kind in kinds))

    async def _caught_up_with(self, kind: Kind) -> None:
        where = self._where(kind)
        listing = await self.kube.list(kind, where)
        there = {look(obj, "metadata.name"): version(obj) for obj in listing.items}

        def is_up_to_date() -> bool:
            known = {look(obj, "metadata.name"): version(obj) for obj in self.objects.of(kind, where)}
            gone = [name for name in known.keys() - there.keys() if known[name] < int(listing.resource_version)]
            return not gone and all(known.get(name, 0) >= seen for name, seen in there.items())

        await self.objects.until(is_up_to_date)

    async def bound(self, name: str = "mine", seconds: float = PATIENT) -> Json:
        """Wait until the claim shows a handle that says it holds the claim; the handle."""

        def holds() -> bool:
            held = look(self.handle(name), "spec.resourceClaim") or {}
            return (held.get("namespace"), held.get("name")) == (self.namespace, name)

        await self.until(f"{name} is bound", holds, seconds)
        return self.handle(name)

    async def served(self, name: str = "mine", seconds: float = PATIENT) -> Json:
        """Wait until the claim shows the state of every resource that it lists; the claim."""

        def shown() -> bool:
            resources = look(self.claim(name), "status.resources") or []
            return bool(self.handle(name)) and bool(resources) and all("state" in entry for entry in resources)

        await self.until(f"{name} shows its resources", shown, seconds)
        return self.claim(name)

    async def ready(self, name: str = "mine", seconds: float = PATIENT) -> Json:
        await self.until(f"{name} is ready", lambda: look(self.claim(name), "status.ready") is True, seconds)
        return self.claim(name)

    async def gone(self, kind: Kind, name: str, seconds: float = PATIENT) -> None:
        await self.until(f"{kind.name} {name} is gone", lambda: not self.one(kind, name), seconds)

    async def says(self, name: str, *words: str, seconds: float = PROMPT) -> None:
        """Wait until the claim, its handle or an Event about one of them names all of these words."""
        await self.objects_say([(RESOURCE_CLAIM, name)], *words, seconds=seconds)

    async def objects_say(self, objects: list[tuple[Kind, str]], *words: str, seconds: float = PROMPT) -> None:
        """The same of any objects; a claim brings its handle along."""
        reason = ""
        try:
            async with asyncio.timeout(seconds):
                while not reason or not all(word in reason for word in words):
                    reason = await self._said(objects)
                    await asyncio.sleep(0.1)
        except TimeoutError:
            pytest.fail(f"{objects} does not name {words} within {seconds:g} s but says: {reason}\n{self.describe()}")
        await self._caught_up()

    async def _said(self, objects: list[tuple[Kind, str]]) -> str:
        handles = [(RESOURCE_HANDLE, self.handle_name(name)) for kind, name in objects if kind is RESOURCE_CLAIM]
        parts = []
        for kind, name in [*objects, *handles]:
            if name:
                parts += [json.dumps(described(self.one(kind, name))), await self.events(kind, name)]
        return "\n".join(parts)

    async def others_go_on(self) -> None:
        """A claim made elsewhere is served in the ordinary time: so long the product had to do what it should not."""
        others, name = self._others or self, f"other-{uuid4().hex[:6]}"
        await others.ask(name, provider="lab")
        await others.ready(name)
        await others.delete(RESOURCE_CLAIM, name)

    # Leaving.

    async def leave(self) -> None:
        """Ask for the deletion of all that was made; the product, now or when it runs again, does the rest."""
        for kind, objects in (
            (RESOURCE_CLAIM, self.claims()),
            (RESOURCE_POOL_SCALING, self._operators(RESOURCE_POOL_SCALING)),
            (RESOURCE_POOL, self._operators(RESOURCE_POOL)),
            (RESOURCE_HANDLE, self.handles()),
        ):
            await asyncio.gather(*(self._dispose(kind, obj) for obj in objects))
        # Providers go last, and nothing waits for it: deletions do without them.
        listing = await self.kube.list(RESOURCE_PROVIDER, OPERATOR_NAMESPACE)
        await asyncio.gather(*(self._dispose(RESOURCE_PROVIDER, o) for o in listing.items if self._bears_tag(o)))
        with suppress(Absent):
            await self.kube.delete(NAMESPACE, "", self.namespace)

    async def _dispose(self, kind: Kind, obj: Json) -> None:
        name = look(obj, "metadata.name")
        with suppress(Absent, Conflict):
            await self.delete(kind, name)
            if foreign := [f for f in look(obj, "metadata.finalizers") or [] if f.startswith("tests/")]:
                retained = [f for f in look(obj, "metadata.finalizers") if f not in foreign]
                await self.edit(kind, name, {"metadata": {"finalizers": retained}})

    def _operators(self, kind: Kind) -> list[Json]:
        return [obj for obj in self.objects.of(kind, OPERATOR_NAMESPACE) if self._bears_tag(obj)]

    def _bears_tag(self, obj: Json) -> bool:
        return str(look(obj, "metadata.name")).endswith(f"-{self.tag}")

    def _is_ours(self, handle: Json) -> bool:
        providers = [look(entry, "provider.name") or "" for entry in look(handle, "spec.resources") or []]
        names = [*providers, look(handle, "spec.provider.name") or "", look(handle, "spec.resourcePool.name") or ""]
        claimed = look(handle, "spec.resourceClaim.namespace") == self.namespace
        return claimed or self._bears_tag(handle) or any(name.endswith(f"-{self.tag}") for name in names)

    def _where(self, kind: Kind) -> str:
        return self.namespace if kind.name in ("ResourceClaim", "Gadget", "ConfigMap") else OPERATOR_NAMESPACE

    def describe(self) -> str:
        """What is on this ground, for a test that has failed."""
        shown = [without_noise(obj) for obj in (*self.claims(), *self.handles(), *self._operators(RESOURCE_POOL))]
        gadgets = [f"{look(o, 'metadata.name')} {o.get('spec')} {o.get('status')}" for o in self.gadgets()]
        return yaml.safe_dump_all(shown) + "\nGadgets: " + "; ".join(gadgets)
