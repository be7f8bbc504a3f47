"""What a claim shows that the binder looks at, from its first look on, and what others have written meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, cast

import pytest
from claim_scenes import Parts, claim, entry, handle, provider
from temporalio.testing import ActivityEnvironment
from unwatched_cache import MOMENT, a_moment, unwatched_queue

from activities.claims.binding import Binding
from activities.claims.evaluation import Beyond
from activities.claims.handle_reconciliation import Reconciliation
from activities.claims.handles import HandleActivities
from activities.claims.managed_resources import States
from activities.claims.object_writes import Writer
from activities.claims.tools import Tools
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE, RESOURCE_PROVIDER
from domain.claims.claim_evaluation import plan_claim
from domain.claims.evaluator_interface import (
    BindingQuestion,
    ClaimPlan,
    ClaimQuestion,
    HandleBody,
    HandlePlan,
    HandleQuestion,
)
from domain.claims.handle_binding import plan_binding
from domain.claims.json_objects import text_at, value_at
from domain.identity import Key, Kind
from domain.operator_domain import DEFAULT
from domain.resource import timestamp
from engine.errors import Conflict, Denied, Invalid
from engine.kube import KubeApi
from engine.settings import Settings

Json = dict[str, Any]
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
KEY = Key(kind="ResourceClaim", namespace="user-ada", name="mine", uid="claim-uid")
SIZES = [{"name": "size", "validation": {"openAPIV3Schema": {"type": "integer"}}}]


class Binder(Parts):
    """The binder with the API server and the evaluator that it needs; it notes each write of a claim."""

    operator_domain = DEFAULT

    def __init__(self) -> None:
        self.woken: list[Key] = []
        queue = unwatched_queue(self.woken, self)
        self.cache = queue.cache
        self.there: dict[str, Json] = {}
        self.read: list[str] = []
        self.written: list[str] = []
        self.now = NOW
        self.meanwhile: Callable[[], None] | None = None
        writer = Writer(cast(KubeApi, self), self.cache)
        part = cast(Any, self)
        reconciliation = Reconciliation(self.cache, writer, part, part, part, part)
        tools = Tools(self.cache, writer, reconciliation, part, Settings())
        HandleActivities(tools, part)
        self.binding = Binding(tools, queue, part)

    def has(self, kind: Kind, obj: Json) -> Json:
        version = str(int(self.there.get(obj["metadata"]["name"], obj)["metadata"].get("resourceVersion", "0")) + 1)
        metadata = {"creationTimestamp": timestamp(NOW), "uid": "any", **obj["metadata"], "resourceVersion": version}
        made = {**obj, "metadata": metadata}
        self.there[made["metadata"]["name"]] = made
        self.cache.learn(kind, cast(Any, made))
        return made

    async def look(self, now: datetime = NOW) -> Json:
        """The claim after a look at it."""
        self.now = now
        passed, _ = await ActivityEnvironment().run(self.binding.bind, KEY)
        passed.confirm()
        return self.there["mine"]

    # The API server.

    async def replace(self, kind: Kind, namespace: str, name: str, obj: Json, subresource: str = "") -> Json:
        before = self.there[name]
        if obj["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]:
            raise Conflict(name)
        if " " in str(value_at(cast(Any, obj), "metadata", "labels", "team")) and not subresource:
            raise Invalid("metadata.labels: Invalid value: 'the blue ones'")
        self.written.append(f"{name} {subresource}".strip())
        stored = {"status": obj["status"]} if subresource else {**obj, "status": before.get("status", {})}
        return self.has(kind, {**before, **stored})

    async def create(self, *_: object) -> None:
        """An Event."""

    async def get(self, kind: Kind, namespace: str, name: str) -> Json:
        self.read.append(name)
        return self.there[name]

    # The evaluator.

    async def claim(self, question: ClaimQuestion) -> ClaimPlan:
        return plan_claim(question)

    async def handle(self, question: HandleQuestion) -> HandlePlan:
        if text_at(question.claim, "status", "resourceHandle", "name"):
            raise Shown(question.claim)
        if self.meanwhile:
            self.meanwhile()
        raise Beyond("TemplateLimit", "took longer than 1.5 s")

    # The rest.

    async def states(self, *_: object, **__: object) -> States:
        return States((None,))


class Served(Binder):
    """Evaluates handles as they are; `meanwhile` happens during that."""

    async def handle(self, question: HandleQuestion) -> HandlePlan:
        if self.meanwhile:
            self.meanwhile()
        return HandlePlan(spec=question.handle["spec"])


class Quota(Served):
    """The API server accepts no handle."""

    async def create(self, kind: Any, *_: object) -> None:
        if kind is RESOURCE_HANDLE:
            raise Denied("exceeded quota: handles")


class Shown(Exception):  # noqa: N818 - ends the look
    def __init__(self, claim: Json) -> None:
        self.claim = claim


B = TypeVar("B", bound=Binder)


@pytest.fixture
def binder(monkeypatch: pytest.MonkeyPatch) -> Binder:
    return timed(Binder(), monkeypatch)


def timed(binder: B, monkeypatch: pytest.MonkeyPatch) -> B:
    for module in ("claims.binding", "inline_driver"):
        monkeypatch.setattr(f"activities.{module}.now", lambda: binder.now)
    return binder


def asking(size: object) -> Json:
    return claim(provider={"name": "base", "parameterValues": {"size": size}})


async def test_a_claim_that_waits_for_a_free_handle_shows_what_was_accepted(binder: Binder) -> None:
    binder.has(RESOURCE_PROVIDER, provider(parameters=SIZES, disableCreation=True, override={"kind": "ConfigMap"}))
    binder.has(RESOURCE_CLAIM, asking("large"))
    assert value_at((await binder.look())["status"], "provider", "validationErrors")
    binder.has(RESOURCE_CLAIM, {**binder.there["mine"], "spec": asking(3)["spec"]})
    status = (await binder.look())["status"]
    assert status["provider"] == {"name": "base", "parameterValues": {"size": 3}}
    assert [each["provider"]["name"] for each in status["resources"]] == ["base"]
    binder.has(RESOURCE_CLAIM, {**binder.there["mine"], "spec": asking(4)["spec"]})
    assert value_at((await binder.look())["status"], "provider", "validationErrors") == ["Parameter size is immutable."]


async def test_a_claim_in_list_mode_that_waits_shows_its_providers(binder: Binder) -> None:
    binder.has(RESOURCE_PROVIDER, provider(disableCreation=True))
    binder.has(RESOURCE_CLAIM, claim(resources=[entry("base")]))
    status = (await binder.look())["status"]
    assert [each["provider"]["name"] for each in status["resources"]] == ["base"]


async def test_a_look_that_finds_nothing_new_only_reads_the_cache(binder: Binder) -> None:
    binder.has(RESOURCE_PROVIDER, provider(parameters=SIZES, disableCreation=True, override={"kind": "ConfigMap"}))
    binder.has(RESOURCE_CLAIM, asking(3))
    await binder.look()
    assert binder.written == ["mine", "mine status"]
    await binder.look(NOW + timedelta(minutes=1))
    assert (binder.read, binder.written) == ([], ["mine", "mine status"])


async def test_a_fault_found_late_overwrites_nothing_that_others_have_written(binder: Binder) -> None:
    binder.has(RESOURCE_PROVIDER, provider(override={"apiVersion": "v1", "kind": "ConfigMap"}))
    binder.has(RESOURCE_CLAIM, claim(provider={"name": "base"}))

    def approved() -> None:
        binder.meanwhile = None
        binder.has(RESOURCE_CLAIM, {**binder.there["mine"], "status": {"approval": {"message": "requested by Ada"}}})

    binder.meanwhile = approved
    status = (await binder.look())["status"]
    assert status["approval"] == {"message": "requested by Ada"}
    assert [each["reason"] for each in status["conditions"]] == ["TemplateLimit"]
    written = [*binder.written]
    assert (await binder.look(NOW + timedelta(minutes=1)))["status"] == status
    assert binder.written == written


async def test_a_claim_shows_that_the_api_server_refuses_its_providers_labels(binder: Binder) -> None:
    fields: Json = {"disableCreation": True, "override": {"kind": "ConfigMap"}}
    binder.has(RESOURCE_PROVIDER, provider(resourceClaimLabels={"team": "the blue ones"}, **fields))
    binder.has(RESOURCE_CLAIM, claim(provider={"name": "base"}))
    shown = await binder.look()
    (stalled,) = shown["status"]["conditions"]
    assert (stalled["type"], stalled["reason"]) == ("Stalled", "ClaimRefused")
    assert "metadata.labels: Invalid value: 'the blue ones'" in stalled["message"]
    assert shown["metadata"]["finalizers"] == [DEFAULT]
    written = [*binder.written]
    assert (await binder.look(NOW + timedelta(minutes=1)))["status"] == shown["status"]
    assert binder.written == written
    binder.has(RESOURCE_PROVIDER, provider(resourceClaimLabels={"team": "blue"}, **fields))
    shown = await binder.look(NOW + timedelta(minutes=2))
    assert (shown["metadata"]["labels"]["team"], "conditions" in shown["status"]) == ("blue", False)


async def test_a_claim_shows_that_the_api_server_refuses_its_handle(monkeypatch: pytest.MonkeyPatch) -> None:
    binder = timed(Quota(), monkeypatch)
    binder.has(RESOURCE_PROVIDER, provider(override={"kind": "ConfigMap"}))
    binder.has(RESOURCE_CLAIM, claim(provider={"name": "base"}))
    (stalled,) = (await binder.look())["status"]["conditions"]
    reported = "no ResourceHandle can be created: exceeded quota: handles"
    assert (stalled["reason"], reported in stalled["message"]) == ("HandleRefused", True)


async def test_an_event_reports_that_an_unbound_claim_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Json] = []

    class Closed(Binder):
        async def replace(self, *_: object, **__: object) -> Json:
            raise Invalid("spec.provider: Invalid value")

        async def create(self, kind: Any, obj: Json, *_: object) -> None:  # type: ignore[override]
            events.append(obj)

    binder = timed(Closed(), monkeypatch)
    binder.has(RESOURCE_PROVIDER, provider(override={"kind": "ConfigMap"}))
    binder.has(RESOURCE_CLAIM, claim(provider={"name": "base"}))
    with pytest.raises(Invalid):
        await binder.look()
    (event,) = events
    assert (event["reason"], event["involvedObject"]["name"]) == ("WriteRefused", "mine")
    assert event["message"].endswith("of ResourceClaim mine: spec.provider: Invalid value")


async def test_a_claim_whose_handle_is_deleted_while_it_is_bound_gets_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    created: list[str] = []

    class Creating(Served):
        async def create(self, kind: Any, obj: Json, *_: object) -> None:
            created.append(kind.name)
            raise Denied("created another one")

    binder = timed(Creating(), monkeypatch)
    binder.has(RESOURCE_PROVIDER, provider(override={"kind": "ConfigMap"}))
    binder.has(RESOURCE_CLAIM, claim(provider={"name": "base"}))
    holder = {"resourceClaim": {"namespace": "user-ada", "name": "mine"}}
    held = binder.has(RESOURCE_HANDLE, handle(entry("base"), **holder))

    def deleted() -> None:
        binder.meanwhile = None
        metadata = {**held["metadata"], "deletionTimestamp": timestamp(NOW), "finalizers": [DEFAULT]}
        binder.has(RESOURCE_HANDLE, {**held, "metadata": metadata})

    binder.meanwhile = deleted
    status = (await binder.look())["status"]
    assert (created, value_at(status, "resourceHandle", "name")) == ([], held["metadata"]["name"])


class Policy(Served):
    """The API server refuses each write of the handles in `kept`."""

    kept: tuple[str, ...] = ()

    def __init__(self) -> None:
        super().__init__()
        self.bind, self.binding = self.binding.bind, cast(Any, self.evaluated)

    async def evaluated(self, question: BindingQuestion) -> HandleBody:
        return plan_binding(question)

    async def look(self, now: datetime = NOW) -> Json:
        await ActivityEnvironment().run(self.bind, KEY)
        return self.there["mine"]

    async def replace(self, kind: Kind, namespace: str, name: str, obj: Json, subresource: str = "") -> Json:
        if name in self.kept:
            raise Denied(f"update ResourceHandle poolboy/{name}: denied by a policy")
        return await super().replace(kind, namespace, name, obj, subresource)


async def test_a_claim_that_names_a_handle_only_in_an_outdated_cache_is_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    binder = timed(Policy(), monkeypatch)
    binder.has(RESOURCE_PROVIDER, provider(override={"kind": "ConfigMap"}, disableCreation=True))
    outdated = {**claim(provider={"name": "base"}), "status": {"resourceHandle": {"name": "guid-gone"}}}
    released = {**binder.has(RESOURCE_CLAIM, outdated), "status": {}}
    binder.there["mine"] = {**released, "metadata": {**released["metadata"], "resourceVersion": "7"}}
    held = binder.has(RESOURCE_HANDLE, handle(entry("base", "base")))
    status = (await binder.look())["status"]
    assert status["resourceHandle"]["name"] == held["metadata"]["name"]


@pytest.mark.parametrize(("kept", "gets"), [(("guid-1",), "guid-2"), (("guid-1", "guid-2"), None)])
async def test_a_free_handle_that_the_api_server_lets_nobody_bind_is_passed_over(
    kept: tuple[str, ...], gets: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    binder = timed(Policy(), monkeypatch)
    binder.kept = kept
    binder.has(RESOURCE_PROVIDER, provider(override={"kind": "ConfigMap"}, disableCreation=True))
    for name in ("guid-1", "guid-2"):
        held = handle(entry("base", "base"))
        binder.has(RESOURCE_HANDLE, {**held, "metadata": {**held["metadata"], "name": name}})
    binder.has(RESOURCE_CLAIM, claim(provider={"name": "base"}))
    status = (await binder.look())["status"]
    assert value_at(status, "resourceHandle", "name") == gets
    stalled = [(each["reason"], each["message"]) for each in status.get("conditions", [])]
    refusal = "guid-1 cannot be bound: update ResourceHandle poolboy/guid-1: denied by a policy"
    assert stalled == ([] if gets else [("HandleRefused", refusal)])


@pytest.mark.parametrize(
    ("made", "default", "later", "start"),
    [
        (0, "1h", 0, 0),
        (0, "1h", 90, 0),  # a second attempt, after the worker died
        (1, "1h", 3, 0),  # the API server's clock is ahead
        (0, "9h", 90, 90),  # the end was cut by a maximum
        (0, "{{ '1h' }}", 90, 90),
        (90, "1h", 90, 90),  # the end is another's
    ],
)
async def test_a_binding_that_a_second_attempt_finishes_began_with_the_first(
    binder: Binder, made: int, default: str, later: int, start: int
) -> None:
    def at(seconds: int) -> str:
        return timestamp(NOW + timedelta(seconds=seconds))

    binder.has(RESOURCE_PROVIDER, provider())
    user_claim = claim(provider={"name": "base"})
    binder.has(RESOURCE_CLAIM, {**user_claim, "metadata": {**user_claim["metadata"], "creationTimestamp": at(-1)}})
    holder = {"resourceClaim": {"namespace": "user-ada", "name": "mine"}}
    held = handle(entry("base"), lifespan={"default": default, "end": at(3600)}, **holder)
    binder.has(RESOURCE_HANDLE, {**held, "metadata": {**held["metadata"], "creationTimestamp": at(made)}})
    with pytest.raises(Shown) as shown:
        await binder.look(NOW + timedelta(seconds=later))
    assert shown.value.claim["status"]["lifespan"]["start"] == at(start)


@pytest.mark.parametrize(
    "newer",
    [
        {"metadata": {"deletionTimestamp": timestamp(NOW), "finalizers": [DEFAULT]}},
        {"spec": {"resourceClaim": {"namespace": "user-ada", "name": "other"}}},
    ],
)
async def test_a_claim_gets_no_handle_that_is_its_own_only_in_an_outdated_cache(binder: Binder, newer: Json) -> None:
    binder.has(RESOURCE_PROVIDER, provider(disableCreation=True, override={"kind": "ConfigMap"}))
    binder.has(RESOURCE_CLAIM, claim(provider={"name": "base"}))
    holder = {"resourceClaim": {"namespace": "user-ada", "name": "mine"}}
    held = binder.has(RESOURCE_HANDLE, handle(entry("base"), **holder))
    metadata = {**held["metadata"], "resourceVersion": "7", **newer.get("metadata", {})}
    binder.there[held["metadata"]["name"]] = {**held, **newer, "metadata": metadata}
    status = (await binder.look())["status"]
    assert "resourceHandle" not in status


@pytest.mark.parametrize("edited", [True, False])
async def test_a_claim_is_woken_if_a_provider_was_edited_while_it_was_bound(
    edited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watcher may have seen the edit before the claim named the provider."""
    monkeypatch.setattr("activities.claims.cache.LONGEST_BEHIND", MOMENT)
    binder = timed(Served(), monkeypatch)
    binder.has(RESOURCE_PROVIDER, provider())
    binder.has(RESOURCE_CLAIM, claim(provider={"name": "base"}))
    holder = {"resourceClaim": {"namespace": "user-ada", "name": "mine"}}
    binder.has(RESOURCE_HANDLE, handle(entry("base"), **holder))

    def edit() -> None:
        binder.meanwhile = None
        binder.has(RESOURCE_PROVIDER, provider(vars={"size": 2}))

    binder.meanwhile = edit if edited else None
    await binder.look()
    await a_moment()
    assert [key for key in binder.woken if key.kind == "ResourceClaim"] == [KEY] * edited
