"""The identity of an object: its kind, and the key of its one workflow.

The key contains the uid, so that an object which is deleted and recreated under the same name gets a second workflow
while the old one finishes its clean-up. The workflow id is `<Kind>/<namespace>/<name>/<uid>`, with `-` in place of an
empty namespace. Where several clusters share a Temporal namespace, the cluster's name comes first. A lifecycle
without a custom resource has the uid `0` if it is in an area's `STANDING`, else an empty one.

A worker sees only its own cluster and would report objects of other clusters as absent. Therefore task queue names
begin with the cluster (`task_queue`), and a key always names the cluster whose workers run the lifecycle.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection
from functools import cache
from types import ModuleType

from domain.areas import installed
from domain.model import Model
from domain.operator_domain import PLACEHOLDER


def is_possible_name(name: str) -> bool:
    """Whether an object or a namespace can have the name. In a URL path, any other name leads to a subresource or,
    behind a proxy, to other objects.
    """
    return name not in (".", "..") and "/" not in name and "%" not in name


class Kind(Model):
    """A kind of object or lifecycle. If `plural` is empty, Kubernetes has no resource of this kind."""

    name: str  # also the workflow type
    # `PLACEHOLDER` if the group is the OPERATOR_DOMAIN; the same applies to `finalizer`. `under` replaces it with the
    # domain. Kubernetes clients call `under` themselves.
    group: str
    version: str
    plural: str
    area: str  # the name of its area (`domain.areas`) and the plain name of its workflow task queue (`task_queue`)
    finalizer: str = ""  # set on the kind's objects while they have external resources; empty if never set
    lifecycle: bool = True  # False for kinds that are only read or written
    served: bool = False  # True for kinds whose objects are in the served cluster (`engine.kube.clusters`)
    reporter: str = ""  # the reporting component of the lifecycle's Events; if empty, the kind's name
    of_cluster: bool = True  # False for objects named by AWS: they have one lifecycle for all clusters

    @property
    def api_version(self) -> str:
        """The kind's `group/version`; raises ValueError if the group is still the placeholder for OPERATOR_DOMAIN."""
        if self.group == PLACEHOLDER:
            raise ValueError(f"the group of {self.name} is still the placeholder OPERATOR_DOMAIN: call `under` first")
        return f"{self.group}/{self.version}" if self.group else self.version

    def under(self, domain: str) -> Kind:
        if self.group != PLACEHOLDER:
            return self
        return self.model_copy(update={"group": domain, "finalizer": domain if self.finalizer else ""})


class Key(Model):
    kind: str
    namespace: str
    name: str
    uid: str
    cluster: str = ""

    @property
    def workflow_id(self) -> str:
        suffix = f"/{self.uid}" if self.uid else ""
        return f"{id_prefix(self.kind, self.cluster)}{self.namespace or '-'}/{self.name}{suffix}"

    @property
    def path(self) -> str:
        return f"{self.kind}/{self.namespace or '-'}/{self.name}"

    def __str__(self) -> str:
        return self.path


@cache
def all_kinds() -> dict[str, Kind]:
    return {kind.name: kind for area in _packages() for kind in area.KINDS}


@cache
def reported_kinds() -> dict[str, Kind]:
    """The kinds that Events may be about: Perdure's own, and other products' kinds in the areas' `REPORTED_KINDS`."""
    others = {kind.name: kind for area in _packages() for kind in getattr(area, "REPORTED_KINDS", ())}
    return {**others, **all_kinds()}


@cache
def all_areas() -> tuple[str, ...]:
    return tuple(sorted({kind.area for kind in all_kinds().values() if kind.lifecycle}))


@cache
def objectless(kind: str, cluster: str, domain: str) -> tuple[Key, ...]:
    """The keys of the kind's lifecycles without a custom resource.

    Each area lists its keys in `STANDING`. If a key has the name `PLACEHOLDER` there, this name is replaced with
    `domain`, the OPERATOR_DOMAIN.
    """
    keys: list[Key] = [key for area in _packages() for key in getattr(area, "STANDING", ())]
    return tuple(
        key.model_copy(update={"name": domain if key.name == PLACEHOLDER else key.name, "cluster": cluster})
        for key in keys
        if key.kind == kind
    )


def objectless_in(areas: Collection[str], cluster: str, domain: str) -> list[Key]:
    kinds = [kind.name for kind in all_kinds().values() if kind.area in areas]
    return [key for kind in kinds for key in objectless(kind, cluster, domain)]


def task_queue(plain: str, cluster: str) -> str:
    return f"{cluster}/{plain}" if cluster else plain


def id_prefix(kind: str, cluster: str) -> str:
    return f"{cluster}/{kind}/" if cluster and _of_cluster(kind) else f"{kind}/"


def key_found(workflow_id: str, kind: str, namespace: str, name: str, cluster: str) -> Key | None:
    """The key of a workflow in Temporal's list; None if it is not a workflow of this cluster."""
    key = Key(kind=kind, namespace=namespace, name=name, uid="", cluster=cluster)
    before, found, uid = workflow_id.partition(key.workflow_id)
    if before or not found or (uid and not uid.startswith("/")):
        return None
    return key.model_copy(update={"uid": uid.removeprefix("/")})


def _of_cluster(kind: str) -> bool:
    known = all_kinds().get(kind)
    return known is None or known.of_cluster


def _packages() -> list[ModuleType]:
    return [importlib.import_module(area.package) for area in installed().values()]
