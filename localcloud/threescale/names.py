"""System names: by default derived from the name, immutable, unique per kind."""

from __future__ import annotations

import re
import secrets
import unicodedata

from localcloud.threescale import refusals
from localcloud.threescale.parameters import Parameters
from localcloud.threescale.refusals import Complaints

_SYSTEM_NAME = re.compile(r"\A\w[\w\-/]+\Z", re.ASCII)


def system_name_of(parameters: Parameters, name: str = "name") -> str:
    given = parameters.text("system_name")
    if given:
        return given
    plain = unicodedata.normalize("NFKD", parameters.text(name)).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "_", plain.lower()).strip("_")


def if_malformed(complaints: Complaints, system_name: str) -> None:
    if not system_name:
        complaints.add("system_name", refusals.BLANK)
    elif not _SYSTEM_NAME.match(system_name):
        complaints.add("system_name", refusals.INVALID)
    complaints.if_too_long({"system_name": system_name}, "system_name")


def if_malformed_key(complaints: Complaints, key: str, field: str = "value") -> None:
    if len(key) < 5:
        complaints.add(field, "is too short (minimum is 5 characters)")
    elif any(each.isspace() for each in key):
        complaints.add(field, refusals.INVALID)
    complaints.if_too_long({field: key}, field)


def random_key() -> str:
    return secrets.token_hex(16)
