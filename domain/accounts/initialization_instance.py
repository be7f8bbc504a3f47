"""The type and image of the instance that initialises a region, as in the replaced operator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

MicroType = Literal["t3.micro", "t2.micro"]

ARCHITECTURE = "x86_64"
# EC2's codes for an instance type that a region does not offer. Each code may also mean something else.
_TYPE_REFUSED = frozenset({"InvalidInstanceType", "InvalidParameterValue", "Unsupported"})


def instance_type(*, offers_t3: bool) -> MicroType:
    return "t3.micro" if offers_t3 else "t2.micro"


def type_refused(kind: MicroType, code: str) -> bool:
    return kind == "t3.micro" and code in _TYPE_REFUSED


def first_image(images: Iterable[tuple[str, str]]) -> str | None:
    """The id of the first fitting image; `images` are ids and names."""
    return next((image_id for image_id, name in images if "SAP" not in name and "BETA" not in name), None)
