"""Kubernetes objects as tests read them: plain, by paths, and without trusting that anything is there yet."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

from domain.claims.domain_names import DomainNames
from domain.resource import parse_timestamp

Json = dict[str, Any]
# Another domain than the default, under which the examples, the demo and the chaos tests run: a name that does not
# follow from the setting is found by every test here.
NAMES = DomainNames(domain=os.environ.get("OPERATOR_DOMAIN", "poolboy.dev.local"))


def look(obj: object, path: str) -> Any:
    """The value under a path such as `status.resources.0.ready`, None where it ends early."""
    value: Any = obj
    for part in path.split("."):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def annotation(obj: Json, key: str) -> str | None:
    """An annotation under the operator's domain, by the last part of its key."""
    found = (look(obj, "metadata.annotations") or {}).get(f"{NAMES.domain}/{key}")
    return None if found is None else str(found)


def label_of(obj: Json, key: str) -> str | None:
    """A label under the operator's domain, by the last part of its key."""
    found = (look(obj, "metadata.labels") or {}).get(f"{NAMES.domain}/{key}")
    return None if found is None else str(found)


def moment(obj: object, path: str) -> datetime:
    """A timestamp that must be there."""
    found = parse_timestamp(str(look(obj, path) or ""))
    assert found is not None, f"no time under {path}: {obj}"
    return found


def deleting(obj: Json) -> bool:
    return look(obj, "metadata.deletionTimestamp") is not None


def version(obj: Json) -> int:
    """Versions of one server are comparable: a higher one was written later."""
    return int(look(obj, "metadata.resourceVersion"))


def link(kind: str, namespace: str, name: str) -> Json:
    return {"apiVersion": NAMES.api_version, "kind": kind, "namespace": namespace, "name": name}


def described(obj: Json) -> Json:
    """What an object says of itself: its status without the live objects in it."""
    status = dict(look(obj, "status") or {})
    status["resources"] = [
        {field: value for field, value in entry.items() if field != "state"} for entry in status.get("resources") or []
    ]
    return status


def without_noise(obj: Json) -> Json:
    metadata = {name: value for name, value in (look(obj, "metadata") or {}).items() if name != "managedFields"}
    return {**obj, "metadata": metadata, "status": described(obj)}


def now() -> datetime:
    return datetime.now(UTC)


def stamp(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%dT%H:%M:%SZ")
