"""Carries out what the decisions of 3scale objects ask for, one call after the other, on the simulator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from threescale_process import Client

from domain.threescale.apply_response import read_backend, read_product, wrote_backend, wrote_product
from domain.threescale.backend import sync_backend
from domain.threescale.calls import Read, Resource, Sync, Write
from domain.threescale.product_sync import Wanted, sync_product
from domain.threescale.remote_object import One, read_one, wrote_one
from domain.threescale.remote_state import FoundBackend, FoundProduct, Identified
from domain.threescale.resources import BackendSpec

_MOST_LOOKS = 12

T = TypeVar("T", bound=Identified)


def read(client: Client, wanted: Read) -> Any:
    """The answer, None where there is nothing of that id."""
    answer = client.call("GET", wanted.path, params=wanted.query)
    assert answer.status_code in (200, 404), answer.text
    return answer.json() if answer.status_code == 200 else None


def write(client: Client, wanted: Write) -> Any:
    """The answer of a call that must succeed."""
    answer = client.call(wanted.method, wanted.path, wanted.fields or None)
    assert answer.status_code in (200, 201), f"{wanted.summary}: {answer.text}"
    return answer.json() if answer.content else None


def bring_product(client: Client, wanted: Wanted, found: FoundProduct, known_id: int = 0) -> FoundProduct:
    """Until nothing is left to do; how that went is in the simulator's ledger."""
    for _ in range(_MOST_LOOKS):
        sync = sync_product(wanted, found, known_id)
        if sync.done:
            return found
        assert not sync.missing
        for each in sync.reads:
            found = read_product(found, each, read(client, each), wanted.spec.system_name)
        for step in sync.writes:
            found = wrote_product(found, step, write(client, step))
    raise AssertionError(f"no end of it: {sync_product(wanted, found)}")


def bring_backend(client: Client, spec: BackendSpec, found: FoundBackend, known_id: int = 0) -> FoundBackend:
    """The same for a backend."""
    for _ in range(_MOST_LOOKS):
        sync = sync_backend(spec, found, known_id)
        if sync.done:
            return found
        for each in sync.reads:
            found = read_backend(found, each, read(client, each), spec.system_name)
        for step in sync.writes:
            found = wrote_backend(found, step, write(client, step))
    raise AssertionError(f"no end of it: {sync_backend(spec, found)}")


def bring_one(
    client: Client,
    kind: type[T],
    resource: Resource,
    sync: Callable[[One[T]], Sync],
    is_it: Callable[[T], bool],
    texts: Mapping[str, str],
) -> T:
    """The same for an object without parts; `texts` are what its Secrets hold, by their keys."""
    found = One[T]()
    for _ in range(_MOST_LOOKS):
        wanted = sync(found)
        if wanted.done:
            assert found.item is not None
            return found.item
        for each in wanted.reads:
            found = read_one(kind, each, read(client, each), is_it)
        for step in wanted.writes:
            filled = {**step.fields, **{name: texts[key.key] for name, key in step.secrets.items()}}
            answer = write(client, step.model_copy(update={"fields": filled}))
            found = wrote_one(kind, resource, found, step, answer)
    raise AssertionError(f"no end of it: {sync(found)}")
