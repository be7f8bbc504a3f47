"""Automatic promotion of a product from staging to production, requested by an annotation.

    deployed to staging ─► read the newest version of each environment ─► differ? ─► promote

Each deployed configuration is promoted in the same pass. The digest of the promoted configuration is stored
(`digests.py`). Versions are read only if the digest changes, or if the whole product is compared with 3scale. 3scale
promotes each version only once. A product without backends has no version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from domain.resource import ObjectMeta
from domain.schema import Json
from domain.threescale.calls import Read, Resource, Write
from domain.threescale.remote_state import answer_of

PROMOTE = "perdure.dev/promote"
SANDBOX, PRODUCTION = "sandbox", "production"


def is_promoted_by_itself(meta: ObjectMeta) -> bool:
    return meta.annotations.get(PROMOTE) == "true"


def reads_of_configs(service_id: int, newest: Mapping[str, int]) -> Iterable[Read]:
    for environment in (SANDBOX, PRODUCTION):
        if environment not in newest:
            yield Read(resource=Resource.CONFIG, path=f"services/{service_id}/proxy/configs/{environment}/latest")


def promotion(service_id: int, newest: Mapping[str, int]) -> Iterable[Write]:
    staging = newest.get(SANDBOX, 0)
    if staging and newest.get(PRODUCTION) != staging:
        fields: dict[str, Json] = {"to": PRODUCTION}
        path = f"services/{service_id}/proxy/configs/{SANDBOX}/{staging}/promote"
        yield Write(resource=Resource.CONFIG, method="POST", path=path, fields=fields)


def newest_after(newest: Mapping[str, int], read: Read, answer: object) -> dict[str, int]:
    """A missing version counts as 0."""
    version = answer_of(read.resource.value, answer).get("version", 0)
    return {**newest, read.path.split("/")[-2]: version if isinstance(version, int) else 0}


def promoted(newest: Mapping[str, int]) -> dict[str, int]:
    return {**newest, PRODUCTION: newest[SANDBOX]}
