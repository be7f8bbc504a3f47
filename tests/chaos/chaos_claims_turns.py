"""The turns of resource claims: what people ask for, and every write with which Perdure answers.

A turn begins when everything has settled. Its writes are named by verb, kind and subresource, with a number where one
of a name follows another; a test holds that an undisturbed turn makes them, and none of another name. So every moment
at which something changes outside is tried, and none is forgotten when the code changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from chaos_claims_lab import POOL, ClaimsLab
from chaos_installation import Armed
from chaos_proxy import Break, Request
from chaos_striking import Area, counted, write_name, writes

# Perdure's word to people, not what it does: nothing follows from an Event.
UNTOLD = "POST events"


def create_in_a_death(lab: ClaimsLab) -> None:
    """A claim is created, and the worker dies when its handle is stored and the answer is not."""
    made = lab.intercept(nth("POST resourcehandles 1"), Break.AFTER)
    BY_NAME["create"].act(lab, "")
    lab.await_struck([Armed("create", made.struck.is_set)])
    lab.worker.kill()
    lab.lift()
    lab.worker.start()
    lab.settle()


@dataclass(frozen=True)
class Turn:
    """What people do; `prepare` comes before, undisturbed, and names what it is done to once it has settled."""

    name: str
    act: Callable[[ClaimsLab, str], None]
    writes: tuple[str, ...]
    prepare: Callable[[ClaimsLab], str] = lambda lab: ""


def numbered(requests: Iterable[Request]) -> list[str]:
    """The writes among the requests, as tables name them."""
    seen: Counter[str] = Counter()
    found = []
    for request in requests:
        if request.method == "GET":
            continue
        name = write_name(request)
        seen[name] += 1
        found.append(f"{name} {seen[name]}")
    return [name for name in found if not name.startswith(UNTOLD)]


def nth(write: str) -> Callable[[Request], bool]:
    """A predicate that recognises the write of that name and number, and nothing after it."""
    name, _, number = write.rpartition(" ")
    seen = 0

    def matches(request: Request) -> bool:
        nonlocal seen
        if request.method == "GET" or write_name(request) != name:
            return False
        seen += 1
        return seen == int(number)

    return matches


def _claimed(lab: ClaimsLab, **spec: Any) -> str:
    return lab.claim("chest", **spec)


def _filled(lab: ClaimsLab) -> str:
    name = lab.new_name("pool")
    lab.make_pool(name, 1, "crate")
    return name


def _detach(lab: ClaimsLab, name: str) -> None:
    lab.expected.claims[name] = ""
    lab.label(name, leave="yes")


def _auto_delete(lab: ClaimsLab, name: str) -> None:
    del lab.expected.claims[name]
    lab.label(name, leave="yes")


_LEAVE = {"when": "metadata.labels.leave == 'yes'"}

TURNS: tuple[Turn, ...] = (
    Turn(
        "create",
        lambda lab, _: _unsettled(lab.claim("chest")),
        (
            "PUT resourceclaims 1",
            "POST resourcehandles 1",
            "PUT resourceclaims/status 1",
            "POST configmaps 1",
            "PUT resourcehandles 1",
            "POST configmaps 2",
            "PUT resourcehandles/status 1",
            "PUT resourceclaims 2",
            "PUT resourceclaims/status 2",
        ),
    ),
    Turn(
        "bind",
        lambda lab, _: _unsettled(lab.claim("box")),
        (
            "PUT resourceclaims 1",
            "PUT resourcehandles 1",
            "PUT resourceclaims/status 1",
            "PATCH configmaps 1",
            "PATCH configmaps 2",
            "POST resourcehandles 1",
            "PUT resourceclaims/status 2",
            "POST configmaps 1",
            "PUT resourcehandles 2",
            "POST configmaps 2",
            "PUT resourcehandles/status 1",
            "PUT resourcepools/status 1",
        ),
    ),
    Turn(
        "edit",
        lambda lab, name: lab.resize(name, "2"),
        (
            "PUT resourceclaims/status 1",
            "PUT resourcehandles 1",
            "PATCH configmaps 1",
            "PUT resourceclaims/status 2",
        ),
        _claimed,
    ),
    Turn(
        "expire",
        lambda lab, name: lab.expire(name),
        (
            "DELETE resourcehandles 1",
            "DELETE configmaps 1",
            "DELETE configmaps 2",
            "DELETE resourceclaims 1",
            "PATCH resourcehandles 1",
            "PATCH resourceclaims 1",
        ),
        _claimed,
    ),
    Turn(
        "delete claim",
        lambda lab, name: lab.delete_claim(name),
        (
            "DELETE resourcehandles 1",
            "DELETE configmaps 1",
            "DELETE configmaps 2",
            "PATCH resourcehandles 1",
            "PATCH resourceclaims 1",
        ),
        _claimed,
    ),
    Turn(
        "delete handle",
        lambda lab, name: lab.delete_handle(name),
        (
            "DELETE configmaps 1",
            "DELETE configmaps 2",
            "DELETE resourceclaims 1",
            "PATCH resourcehandles 1",
            "PATCH resourceclaims 1",
        ),
        _claimed,
    ),
    Turn(
        "detach",
        _detach,
        (
            "PUT resourceclaims/status 1",
            "DELETE resourcehandles 1",
            "DELETE configmaps 1",
            "DELETE configmaps 2",
            "PATCH resourcehandles 1",
        ),
        lambda lab: _claimed(lab, autoDetach=_LEAVE),
    ),
    Turn(
        "auto-delete",
        _auto_delete,
        (
            "DELETE resourceclaims 1",
            "DELETE resourcehandles 1",
            "DELETE configmaps 1",
            "DELETE configmaps 2",
            "PATCH resourcehandles 1",
            "PATCH resourceclaims 1",
        ),
        lambda lab: _claimed(lab, autoDelete=_LEAVE),
    ),
    Turn(
        "fill a pool",
        lambda lab, _: _unsettled(_filled(lab)),
        (
            "PUT resourcepools 1",
            "POST resourcehandles 1",
            "POST configmaps 1",
            "PUT resourcehandles 1",
            "POST configmaps 2",
            "PUT resourcehandles/status 1",
            "PUT resourcepools/status 1",
        ),
    ),
    Turn(
        "delete a pool",
        lambda lab, name: lab.delete_pool(name),
        (
            "DELETE resourcehandles 1",
            "DELETE configmaps 1",
            "DELETE configmaps 2",
            "PATCH resourcehandles 1",
            "PATCH resourcepools 1",
        ),
        _filled,
    ),
    Turn(
        "scale a pool",
        lambda lab, name: lab.scale(name, 1),
        (
            "POST resourcehandles 1",
            "POST configmaps 1",
            "PUT resourcehandles 1",
            "POST configmaps 2",
            "PUT resourcehandles/status 1",
            "PUT resourcepoolscalings/status 1",
            "PUT resourcepoolscalings 1",
            "PUT resourcepools/status 1",
        ),
        _filled,
    ),
)


def _unsettled(name: str) -> None:
    """Something was made; what becomes of it is the lab's to know."""


def _begin(lab: ClaimsLab) -> Callable[[], None]:
    lab.tidy()
    names = [turn.prepare(lab) for turn in TURNS]
    lab.settle()
    lab.oracle.forget()

    def act() -> None:
        for turn, name in zip(TURNS, names, strict=True):
            turn.act(lab, name)

    return act


BY_NAME = {turn.name: turn for turn in TURNS}
_KINDS = counted([write.rpartition(" ")[0] for write in turn.writes] for turn in TURNS)
AREA = Area(ClaimsLab, (writes(_KINDS),), _begin, ClaimsLab.audit)
__all__ = ["AREA", "BY_NAME", "POOL", "TURNS", "Turn", "nth", "numbered"]
