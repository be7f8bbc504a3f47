"""3scale objects without parts: accounts, users, applications, documents, policies.

They are found by the remembered id, otherwise by their natural key. They are read again after a response that does not
contain the object, such as the response to a change of plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from domain.model import Model
from domain.schema import Json
from domain.threescale.calls import Read, Resource, Write
from domain.threescale.normalize import same_text
from domain.threescale.remote_state import Identified, answer_of, answers_of

T = TypeVar("T", bound=Identified)


class One(Model, Generic[T]):
    looked: bool = False  # the search is complete
    lost: bool = False  # no object has the remembered id, or the object was deleted; the list is searched next
    item: T | None = None
    # The id of an object with the former name, to be deleted after its replacement is created; 0 if none.
    former: int = 0

    @property
    def untouched(self) -> bool:
        return not (self.looked or self.lost)


def read_one(kind: type[T], read: Read, answer: object, is_it: Callable[[T], bool]) -> One[T]:
    """An answer of None means that the object does not exist. Of several matches the oldest counts."""
    wrapper = read.resource.value
    if read.of:
        item = None if answer is None else kind.model_validate(answer_of(wrapper, answer))
        return One(looked=item is not None, lost=item is None, item=item)
    if isinstance(answer, Mapping) and wrapper in answer:
        listed = [kind.model_validate(answer_of(wrapper, answer))]
    else:
        listed = [kind.model_validate(each) for each in answers_of(wrapper, answer)]
    matching = sorted((each for each in listed if is_it(each)), key=lambda each: each.id)
    return One(looked=True, item=matching[0] if matching else None)


def wrote_one(kind: type[T], resource: Resource, found: One[T], write: Write, answer: object) -> One[T]:
    if write.method == "DELETE":
        return One(lost=True)
    fields = answer_of(resource.value, answer)
    if write.resource is not resource or "id" not in fields:
        # The response does not show the object, so it is read again by its id.
        return One(lost=found.lost)
    return One(looked=True, item=kind.model_validate(fields))


def differing(wanted: Mapping[str, Json], found: Identified) -> dict[str, Json]:
    """The wanted fields that differ from `found`. None in `wanted` equals any value; "" in `wanted` equals null."""
    return {
        name: value for name, value in wanted.items() if value is not None and not _same(value, getattr(found, name))
    }


def _same(wanted: Json, found: Json) -> bool:
    return same_text(wanted, str(found or "")) if isinstance(wanted, str) else wanted == found
