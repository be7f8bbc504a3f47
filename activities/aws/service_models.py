"""botocore's models of AWS's services. EC2's model is reduced to the operations in Perdure's lists of permissions.

EC2's whole model takes 18 MiB of memory, and each region's client takes 1.3 MiB more for its 800 methods. That would
be more than half of what a pool of accounts needs.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from botocore.loaders import JSONFileLoader

from activities.aws.permissions import PERMISSIONS
from domain.instances.permissions import DESCRIBE, TERMINATE

_EC2 = "ec2"
_MODEL = "service-2.json.gz"
# An operation of EC2 has the name of its permission.
EC2_OPERATIONS = frozenset(
    name
    for service, _, name in (
        action.partition(":") for action in (*(p.action for p in PERMISSIONS), *DESCRIBE, *TERMINATE)
    )
    if service == _EC2
)


class ServiceModels(JSONFileLoader):
    """Loads botocore's files. EC2's clients have only the operations in `EC2_OPERATIONS`."""

    def load_file(self, file_path: str) -> Any:
        path = Path(f"{file_path}.json.gz")
        if path.name == _MODEL and path.parent.parent.name == _EC2 and path.exists():
            with gzip.open(path, "rb") as file:
                return _reduced(json.load(file, object_pairs_hook=_undocumented))
        return super().load_file(file_path)


def _undocumented(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Documentation is dropped while the file is read: if it were freed later, it would leave holes in memory."""
    return {name: value for name, value in pairs if name != "documentation"}


def _reduced(model: dict[str, Any]) -> dict[str, Any]:
    operations = {name: each for name, each in model["operations"].items() if name in EC2_OPERATIONS}
    shapes: dict[str, Any] = {}
    found = list(_shapes_in(operations))
    while found:
        name = found.pop()
        if name not in shapes:
            shapes[name] = model["shapes"][name]
            found.extend(_shapes_in(shapes[name]))
    return {**model, "operations": operations, "shapes": shapes}


def _shapes_in(part: object) -> Iterator[str]:
    if isinstance(part, Mapping):
        if isinstance(name := part.get("shape"), str):
            yield name
        for each in part.values():
            yield from _shapes_in(each)
    elif isinstance(part, list):
        for each in part:
            yield from _shapes_in(each)
