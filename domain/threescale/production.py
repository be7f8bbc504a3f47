"""Automatic promotion of a product from staging to production, where its annotation asks for it.

    deployed to staging ─► read the newest version of each environment ─► differ? ─► promote ─► metrics may be deleted

A Product with `perdure.dev/promote: "true"` needs no ProxyConfigPromote: each configuration that Perdure deploys is
promoted in the same pass, and the status shows the version in production. A digest remembers that configuration
(`digests.py`), so nothing is read while it stays. 3scale promotes a version once: there is nothing to do where
production has the newest version, or where a product has none because it has no backends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from domain.resource import ObjectMeta
from domain.schema import Json
from domain.threescale.calls import Read, Resource, Write
from domain.threescale.found import answer_of

# "true": what is deployed to staging is promoted to production.
PROMOTE = "perdure.dev/promote"
SANDBOX, PRODUCTION = "sandbox", "production"


def is_promoted_by_itself(meta: ObjectMeta) -> bool:
    """Whether the object asks for it."""
    return meta.annotations.get(PROMOTE) == "true"


def looks_at_configs(service_id: int, newest: Mapping[str, int]) -> Iterable[Read]:
    """What to read of the environments whose newest version is not known."""
    for environment in (SANDBOX, PRODUCTION):
        if environment not in newest:
            yield Read(resource=Resource.CONFIG, path=f"services/{service_id}/proxy/configs/{environment}/latest")


def promotion(service_id: int, newest: Mapping[str, int]) -> Iterable[Write]:
    """The call that brings staging's newest version to production, if production has another one."""
    staging = newest.get(SANDBOX, 0)
    if staging and newest.get(PRODUCTION) != staging:
        fields: dict[str, Json] = {"to": PRODUCTION}
        path = f"services/{service_id}/proxy/configs/{SANDBOX}/{staging}/promote"
        yield Write(resource=Resource.CONFIG, method="POST", path=path, fields=fields)


def newest_after(newest: Mapping[str, int], read: Read, answer: object) -> dict[str, int]:
    """What is known after a read; None as the answer stands for no version, which is 0."""
    version = answer_of(read.resource.value, answer).get("version", 0)
    return {**newest, read.path.split("/")[-2]: version if isinstance(version, int) else 0}


def promoted(newest: Mapping[str, int]) -> dict[str, int]:
    """What is known after a promotion: it takes the version along."""
    return {**newest, PRODUCTION: newest[SANDBOX]}
