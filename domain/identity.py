"""Who an object is: its kind, and the key under which its one workflow runs.

The uid is part of the key, so that deleting and recreating an object of the same name makes a second workflow: the old
one finishes its clean-up while the new one starts. The workflow id is `<Kind>/<namespace>/<name>/<uid>`, `-` standing
for no namespace, prefixed with the cluster's name where several clusters share a Temporal namespace; what is never made
anew under its name has no uid.

A worker sees its own cluster only: to another's it would say that an object does not exist. So the names of all task
queues begin with the cluster as well (`task_queue`), and whoever starts a lifecycle says in its key whose workers run
it, also where the id is the same for all clusters.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection
from functools import cache
from types import ModuleType

from domain.areas import installed
from domain.model import Model
from domain.operator_domain import PLACEHOLDER


class Kind(Model):
    """A kind of object that has a lifecycle; one without a `plural` is no custom resource.

    `group` and `finalizer` are placeholders where OPERATOR_DOMAIN names them: `under` fills the domain in, which
    Kubernetes clients do by themselves. `plural` is the lower-case plural of the API path. `area` names its area
    (`domain.areas`) and the workflow task queue (`task_queue`). `name` is also the workflow
    type. `finalizer` is the one that the kind's objects carry while something of theirs exists outside, empty if they
    carry none. `lifecycle` is False for kinds that others read or write and that no workflow runs for. `served` is True
    for kinds whose objects live in the cluster that is served, where that is another than the one Perdure's own kinds
    live in. `of_cluster` is False for what AWS has named: whichever cluster tells of it, its lifecycle is one.
    """

    name: str
    group: str
    version: str
    plural: str
    area: str
    finalizer: str = ""
    lifecycle: bool = True
    served: bool = False
    of_cluster: bool = True

    @property
    def api_version(self) -> str:
        """The `apiVersion` of its objects.

        Raises:
            ValueError: OPERATOR_DOMAIN names its group, and was not filled in.
        """
        if self.group == PLACEHOLDER:
            raise ValueError(f"the group of {self.name} is OPERATOR_DOMAIN, which `under` fills in")
        return f"{self.group}/{self.version}" if self.group else self.version

    def under(self, domain: str) -> Kind:
        """The kind with this OPERATOR_DOMAIN as its group and finalizer; itself if it is not named by that."""
        if self.group != PLACEHOLDER:
            return self
        return self.model_copy(update={"group": domain, "finalizer": domain if self.finalizer else ""})


class Key(Model):
    """One object of one kind; `cluster` is the one whose workers run its lifecycle."""

    kind: str
    namespace: str
    name: str
    uid: str
    cluster: str = ""

    @property
    def workflow_id(self) -> str:
        """The id of the object's one workflow."""
        suffix = f"/{self.uid}" if self.uid else ""
        return f"{id_prefix(self.kind, self.cluster)}{self.namespace or '-'}/{self.name}{suffix}"

    @property
    def path(self) -> str:
        """What people call it: `Kind/namespace/name`."""
        return f"{self.kind}/{self.namespace or '-'}/{self.name}"

    def __str__(self) -> str:
        return self.path


@cache
def all_kinds() -> dict[str, Kind]:
    """Every kind of every area, by name: an area lists them in the `KINDS` of its package."""
    return {kind.name: kind for area in _packages() for kind in area.KINDS}


@cache
def all_areas() -> tuple[str, ...]:
    """The areas that have kinds with lifecycles, by name."""
    return tuple(sorted({kind.area for kind in all_kinds().values() if kind.lifecycle}))


@cache
def standing(kind: str, cluster: str, domain: str) -> tuple[Key, ...]:
    """The lifecycles of a kind that no custom resource stands behind: an area names them in `STANDING`.

    One that there is for each OPERATOR_DOMAIN has its placeholder as its name there.
    """
    keys: list[Key] = [key for area in _packages() for key in getattr(area, "STANDING", ())]
    return tuple(
        key.model_copy(update={"name": domain if key.name == PLACEHOLDER else key.name, "cluster": cluster})
        for key in keys
        if key.kind == kind
    )


def standing_in(areas: Collection[str], cluster: str, domain: str) -> list[Key]:
    """All of these areas."""
    kinds = [kind.name for kind in all_kinds().values() if kind.area in areas]
    return [key for kind in kinds for key in standing(kind, cluster, domain)]


def task_queue(plain: str, cluster: str) -> str:
    """The task queue that those who work with a cluster call by its plain name (an area, or a `Queue`'s value)."""
    return f"{cluster}/{plain}" if cluster else plain


def id_prefix(kind: str, cluster: str) -> str:
    """How the ids of a kind's lifecycles begin for those who work with a cluster; others' begin otherwise."""
    return f"{cluster}/{kind}/" if cluster and _of_cluster(kind) else f"{kind}/"


def key_found(workflow_id: str, kind: str, namespace: str, name: str, cluster: str) -> Key | None:
    """The key of a lifecycle that Temporal has listed, None if it is another cluster's.

    Args:
        workflow_id: its id.
        kind: as its search attributes say, like the next two.
        namespace: of the object.
        name: of the object.
        cluster: the one that is worked with.
    """
    key = Key(kind=kind, namespace=namespace, name=name, uid="", cluster=cluster)
    before, found, uid = workflow_id.partition(key.workflow_id)
    if before or not found or (uid and not uid.startswith("/")):
        return None
    return key.model_copy(update={"uid": uid.removeprefix("/")})


def _of_cluster(kind: str) -> bool:
    """True for kinds that this version does not know, too."""
    known = all_kinds().get(kind)
    return known is None or known.of_cluster


def _packages() -> list[ModuleType]:
    return [importlib.import_module(area.package) for area in installed().values()]
