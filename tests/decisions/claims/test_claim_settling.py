"""A pass over a handle and its resources, from the plan to the API server: it ends when nothing is left to do."""

from __future__ import annotations

import asyncio
import itertools
from types import SimpleNamespace
from typing import Any, cast

import jsonpatch
import pytest
from claim_domain import NAMES
from claim_scenes import BOUND, Parts, asking, entry, handle, provider, settle
from memory_kube import MemoryKube

from activities.claims.managed_resources import Managed, States
from domain.claims.evaluator_interface import Fault, HandlePlan, HandleQuestion, Operations
from domain.claims.handle_evaluation import plan_handle
from domain.claims.handle_reconciliation import MOST_PATCHES, HandleWorld
from domain.claims.json_objects import object_at, objects_at, text_at
from domain.identity import Key, Kind
from engine.errors import Absent, Denied, Unavailable
from engine.kube.errors import NO_SUCH_KIND

Json = dict[str, Any]
KEY = Key(kind="ResourceClaim", namespace="user-ada", name="mine", uid="claim-uid")
GADGET = {"apiVersion": "lab.perdure.dev/v1", "kind": "Gadget"}
ANYTHING = [{"pathMatch": "/spec/.*"}]


class Server(Parts):
    """A claim, its handle and the live objects of its resources, as an API server has them; plans are the real ones."""

    def __init__(self, user_claim: Json | None, held: Json, *providers: Json) -> None:
        self.claim, self.held = user_claim, held
        self.providers = {each["metadata"]["name"]: each for each in providers}
        self.live: dict[str, Json] = {}
        self.versions = itertools.count(1)
        self.patches: list[tuple[str, Any]] = []
        self.asked = 0
        self.away = False  # the API server of the resources' kind does not answer

    async def settle(self) -> HandleWorld:
        settled = await settle(self, self.held, self.claim)
        self.held, self.claim = cast(Any, settled.handle), cast(Any, settled.claim)
        return settled

    async def providers_for(self, *_: object) -> Any:
        return self.providers

    async def handle(self, question: HandleQuestion) -> HandlePlan:
        self.asked += 1
        return plan_handle(question)

    async def states(self, held: Any, *, expired: bool = False) -> States:
        if self.away and not expired:
            raise Unavailable("no answer")
        names = [text_at(each, "reference", "name") for each in objects_at(held, "spec", "resources")]
        return States(tuple(self.live.get(name) for name in names))

    async def unknown_kinds(self, held: Any, states: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
        kinds = [text_at(each, "reference", "kind") for each in objects_at(held, "spec", "resources")]
        return tuple(index for index, kind in enumerate(kinds) if kind and kind != "Gadget"), ()

    async def create(self, held: Json, definition: Json) -> Json | Fault:
        if definition["kind"] != "Gadget":
            return Fault(reason="UnknownKind", message="the API server serves no such kind")
        return self._written(definition)

    async def update(self, state: Json, operations: Operations) -> Json | Fault:
        patch = list(operations.patch)
        self.patches.append((state["metadata"]["name"], [each["path"] for each in patch]))
        return self._written(jsonpatch.apply_patch(state, patch))

    def _written(self, obj: Json) -> Json:
        name = obj["metadata"]["name"]
        self.live[name] = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(next(self.versions))}}
        return self.live[name]

    async def put(self, kind: object, before: Json, after: Json) -> Json:
        return after

    async def put_status(self, kind: object, before: Json, status: Json) -> Json:
        return {**before, "status": status}


def specs(server: Server) -> dict[str, Json]:
    return {text_at(each, "metadata", "name"): object_at(each, "spec") for each in server.live.values()}


def gadget(name: str, **spec: str) -> Json:
    return {**GADGET, "metadata": {"name": name}, "spec": spec}


async def test_a_new_value_of_a_linked_resource_reaches_the_other_in_the_same_pass() -> None:
    allowed = {"updateFilters": ANYTHING, "parameters": [{"name": "size", "allowUpdate": True}]}
    base = provider("base", template={"definition": gadget("base", size="{{ size }}")}, **allowed)
    link = {
        "name": "base",
        "parameterValues": {"size": "{{ size }}"},
        "templateVars": [{"name": "base_size", "from": "/spec/size"}],
    }
    top = provider(
        "top",
        template={"definition": gadget("top", size="{{ size }}"), "enable": True},
        override={"spec": {"baseSize": "{{ base_size | default('none') }}"}},
        linkedResourceProviders=[link],
        **allowed,
    )
    server = Server(asking({"size": "1"}, {"size": "1"}, "top"), handle(provider={"name": "top"}, **BOUND), base, top)
    await server.settle()
    assert specs(server) == {"base": {"size": "1"}, "top": {"size": "1", "baseSize": "1"}}
    server.claim = asking({"size": "2"}, {"size": "2"}, "top")
    await server.settle()
    assert specs(server) == {"base": {"size": "2"}, "top": {"size": "2", "baseSize": "2"}}


async def test_a_handle_ends_although_its_resources_cannot_be_read() -> None:
    lifespan = {"end": "2026-11-21T11:59:59Z"}
    server = Server(None, handle(entry("base"), lifespan=lifespan), provider(override=gadget("thing")))
    server.away = True
    assert (await server.settle()).over
    server.held["spec"]["lifespan"]["end"] = "2026-11-21T12:00:01Z"
    with pytest.raises(Unavailable):
        await server.settle()
    assert server.live == {}


async def test_a_template_that_differs_each_time_ends_by_itself() -> None:
    chance = provider(
        override={**gadget("chance", word="{{ '[a-z]{20}' | strgen }}")},
        template={"enable": True},
        updateFilters=ANYTHING,
    )
    server = Server(None, handle(entry("base")), chance)
    await server.settle()
    assert len(server.patches) <= MOST_PATCHES


async def test_an_ineffective_write_is_sent_once() -> None:
    server = Server(None, handle(entry("base")), provider(override=gadget("fixed", size="2"), updateFilters=ANYTHING))
    await server.settle()
    before = server.live["fixed"] = {**server.live["fixed"], "spec": {"size": "1"}}
    server._written = lambda obj: before  # type: ignore[method-assign]
    await server.settle()
    assert server.patches == [("fixed", ["/spec/size"])]


async def test_a_mistyped_kind_is_corrected_by_an_edit_of_the_provider() -> None:
    right, wrong = gadget("thing"), {**gadget("thing"), "kind": "Gadgett"}
    server = Server(None, handle(entry("base")), provider(override=wrong))
    assert [fault.reason for fault in (await server.settle()).faults] == ["UnknownKind"]
    server.providers["base"] = provider(override=right)
    assert (await server.settle()).faults == ()
    assert list(server.live) == ["thing"]
    for part in ("spec", "status"):
        assert server.held[part]["resources"][0]["reference"] == {**GADGET, "name": "thing"}


class ProcessDiedError(Exception):
    pass


async def test_a_fault_is_reported_before_a_status_shows_it() -> None:
    server, reported = (
        Server(None, handle(entry("base")), provider(override={**gadget("thing"), "kind": "Gadgett"})),
        [],
    )

    async def create(kind: Kind, event: Any, namespace: str) -> Any:
        reported.append(event["reason"])

    async def dies(kind: object, before: Json, status: Json, **_: object) -> Json:
        raise ProcessDiedError

    events = cast(Any, MemoryKube())
    events.create = create
    server.api = events
    put_status = server.put_status
    server.put_status = dies  # type: ignore[method-assign]
    with pytest.raises(ProcessDiedError):
        await server.settle()
    assert reported == ["UnknownKind"]
    server.put_status = put_status  # type: ignore[method-assign]
    await server.settle()
    assert reported == ["UnknownKind"] * 2, "once more: the attempt that died has shown nothing"
    await server.settle()
    assert reported == ["UnknownKind"] * 2


class Discovery:
    """Serves the Gadget in one version; may be refused an answer about what there is."""

    def __init__(self, *, refused: bool) -> None:
        self.refused = refused

    async def served(self, api_version: str, kind: str) -> object:
        if (api_version, kind) == ("lab.perdure.dev/v1", "Gadget"):
            return SimpleNamespace(kind=None)
        raise Absent("no such kind", code=NO_SUCH_KIND)

    async def in_any_version(self, api_version: str, kind: str) -> object | None:
        if self.refused:
            raise Denied("the list of versions is forbidden")
        return SimpleNamespace() if api_version.startswith("lab.perdure.dev/") and kind == "Gadget" else None


@pytest.mark.parametrize(("refused", "unknown"), [(False, ((0, 1), (2,))), (True, ((), ()))])
async def test_a_kind_is_unknown_only_where_the_api_server_says_so(refused: bool, unknown: object) -> None:
    wrong = [{"kind": "Gadgett"}, {"apiVersion": "lab.perdure.dve/v1"}, {"apiVersion": "lab.perdure.dev/v11"}, {}, {}]
    held = handle(*(entry("base", reference={**GADGET, **each, "name": "a"}) for each in wrong), entry("base"))
    known = SimpleNamespace(names=NAMES)
    managed = Managed(cast(Any, None), cast(Any, Discovery(refused=refused)), cast(Any, known))
    states = (None, None, None, None, {"kind": "Gadget"}, None)
    assert await managed.unknown_kinds(cast(Any, held), cast(Any, states)) == unknown


async def test_resources_are_created_in_their_order_each_after_the_one_before() -> None:
    """A later resource may depend on an earlier one, such as a ConfigMap on its Namespace."""
    began: list[str] = []

    class Slow(Server):
        async def create(self, held: Json, definition: Json) -> Json | Fault:
            began.append(definition["metadata"]["name"])
            assert list(self.live) == began[:-1]
            await asyncio.sleep(0)
            return await super().create(held, definition)

    providers = [provider(each, override=gadget(each)) for each in ("space", "thing", "last")]
    server = Slow(None, handle(*(entry(each) for each in ("space", "thing", "last"))), *providers)
    await server.settle()
    assert (list(server.live), server.asked) == (["space", "thing", "last"], 2)
