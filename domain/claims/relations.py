"""What refers to what among claims, handles, pools and providers of one installation.

ResourceClaim <──> ResourceHandle ──> ResourcePool <── ResourcePoolScaling
  |                    ^ |
  |                    | +──> managed objects, of any kind; their annotations name the handle
  |     claim, handle and pool ──> ResourceProvider ──> ResourceProvider ──> ...
  +──> Namespace

A new or changed free handle or provider may match any claim without a handle. Only one such claim is woken, because
its wake goes to the binder, which handles all of these claims. Each new or changed provider also wakes every claim that
has a handle and lists a resource without a provider.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

from domain import built_in_kinds as built_in
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE, RESOURCE_POOL, RESOURCE_POOL_SCALING, RESOURCE_PROVIDER
from domain.claims.constants import NAMESPACE_REQUESTER_ANNOTATION, RESOURCE_FIELD_MANAGER
from domain.claims.domain_names import DomainNames
from domain.claims.ignore_label import is_left_alone, is_unbound
from domain.claims.json_objects import flag_at, is_deleting, object_at, objects_at, paused, text_at, value_at
from domain.claims.linked_providers import linked_names
from domain.claims.references import (
    handle_name,
    holder_of,
    is_detached,
    named_providers,
    providers_known,
    recorded_reference,
)
from domain.control_annotations import ABANDONED, RETRIED
from domain.identity import Kind
from domain.relations import AnyObject, Linked, News, On, Relation, Scope, WhileNamed, Whom, always
from domain.resource import KubeObject

# Written by kubectl, or when a retry is honoured or an object abandoned; no decision reads them.
UNREAD_ANNOTATIONS = frozenset({"kubectl.kubernetes.io/last-applied-configuration", RETRIED, ABANDONED})
# Users write arbitrary text into templates: each character must match in one way only, or matching takes exponential
# time.
_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_API_VERSION = re.compile(rf"({_LABEL}(\.{_LABEL})*/)?v[a-z0-9]{{1,62}}")
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}")

Names = Iterable[Hashable]


def relations_of(names: DomainNames, namespace: str) -> tuple[Relation, ...]:
    """The relations among the area's kinds. `namespace` is that of handles, pools and providers."""

    def left_alone(each: KubeObject) -> bool:
        return is_left_alone(names, each.document)

    def unbound(claim: KubeObject) -> bool:
        return is_unbound(names, claim.document)

    def given_up(claim: KubeObject) -> Hashable:
        gives_up = is_detached(claim.document) or left_alone(claim) or paused(claim.document)
        return frozenset({"given up"} if gives_up else ())

    def handle_of(claim: KubeObject) -> Names:
        name = handle_name(claim.document)
        return [(namespace, name)] if name and not is_detached(claim.document) else []

    def lacks_provider(claim: KubeObject) -> bool:
        return bool(handle_of(claim)) and not all(providers_known(claim.document))

    def holder(handle: KubeObject) -> Hashable:
        return holder_of(handle.document)

    def free(handle: KubeObject) -> bool:
        return not (holder_of(handle.document) or left_alone(handle) or is_deleting(handle.document))

    def may_be_taken(handle: KubeObject) -> bool:
        return free(handle) and not paused(handle.document)

    def matters_to_claim(handle: KubeObject) -> bool:
        return left_alone(handle) or not is_deleting(handle.document)

    def manager(managed: AnyObject) -> Names:
        annotations = object_at(managed.document, "metadata", "annotations")
        name = text_at(annotations, names.resource_handle_name_annotation)
        here = text_at(annotations, names.resource_handle_namespace_annotation) == namespace
        return [(namespace, name)] if name and here else []

    def managed_version(managed: AnyObject) -> Hashable:
        """Any change counts: templates may read any part of the object, and the claim's status shows all of it."""
        return text_at(managed.document, "metadata", "resourceVersion") if manager(managed) else ""

    handle_left = News(left_alone, on=frozenset({On.CHANGES, On.GOES}), linked=Linked.NEVER, counts=matters_to_claim)
    # The binder writes the claim itself, so only other clients' changes of the holder count.
    rebound = News(holder, on=frozenset({On.CHANGES}), linked=Linked.NEVER, ours=False)
    uses = Relation(
        of=(RESOURCE_CLAIM, RESOURCE_HANDLE, RESOURCE_POOL),
        to=RESOURCE_PROVIDER,
        by=lambda user: [(namespace, name) for name in named_providers(user.document)],
        matters=News(_as_rendered),
    )
    changed_by_others = News(managed_version, ours=False, as_made=always)
    return (
        Relation(
            of=RESOURCE_HANDLE,
            to=AnyObject,
            by=_managed,
            known_as=_itself,
            matters=changed_by_others,
            required=True,
            watched=WhileNamed(Scope.KIND, all="managed", field_manager=RESOURCE_FIELD_MANAGER),
        ),
        Relation(of=AnyObject, to=RESOURCE_HANDLE, by=manager, news=changed_by_others),
        Relation(
            of=RESOURCE_HANDLE,
            to=RESOURCE_CLAIM,
            by=_holder,
            matters=News(given_up),
            news=handle_left,
            required=True,
        ),
        Relation(of=RESOURCE_CLAIM, to=RESOURCE_HANDLE, by=handle_of, matters=handle_left, required=True),
        Relation(of=RESOURCE_CLAIM, to=RESOURCE_HANDLE, by=handle_of, matters=rebound),
        # A new handle does not wake its pool, which has just created and counted it.
        Relation(
            of=RESOURCE_HANDLE,
            to=RESOURCE_POOL,
            by=_pool,
            news=News(_condition, counts=free, as_made=lambda handle: _health(handle) == (None, None)),
        ),
        # Perdure's own writes do not count: a pool writes the status of its scalings itself.
        Relation(
            of=RESOURCE_POOL_SCALING,
            to=RESOURCE_POOL,
            by=lambda scaling: [(scaling.metadata.namespace, _spec(scaling, "resourcePool", "name"))],
            news=News(_requested_scale, ours=False, as_made=lambda _: True),
        ),
        uses,
        Relation(
            of=RESOURCE_PROVIDER,
            to=RESOURCE_PROVIDER,
            by=lambda provider: [(namespace, name) for name in linked_names(provider.document)],
            matters=News(_as_rendered, whom=Whom.NONE, onward=(uses,)),
            transitive=True,
        ),
        _waiting(
            RESOURCE_HANDLE,
            unbound,
            News(_fit, on=frozenset({On.COMES, On.CHANGES}), whom=Whom.ONE, counts=may_be_taken),
        ),
        _waiting(RESOURCE_PROVIDER, unbound, News(_as_rendered, whom=Whom.ONE)),
        _waiting(RESOURCE_PROVIDER, lacks_provider, News(_as_rendered)),
        # Watched only while there are claims: an installation without claims needs no right to watch Namespaces.
        Relation(
            of=RESOURCE_CLAIM,
            to=built_in.NAMESPACE,
            by=lambda claim: [("", claim.metadata.namespace)],
            matters=News(_requester, on=frozenset({On.COMES, On.CHANGES}), among=lambda _, has_handle: has_handle),
            trait=lambda each: not unbound(each),
            watched=WhileNamed(Scope.CLUSTER, all="Namespaces of claims"),
        ),
    )


def _waiting(end: Kind, waits: Callable[[KubeObject], bool], news: News[Any]) -> Relation:
    return Relation(
        of=RESOURCE_CLAIM,
        to=end,
        by=lambda claim: ["any"] if waits(claim) else [],
        known_as=lambda _: ["any"],
        matters=news,
    )


def _managed(handle: KubeObject) -> Names:
    found: dict[tuple[str, ...], None] = {}
    for index, entry in enumerate(objects_at(handle.document, "spec", "resources")):
        recorded = recorded_reference(handle.document, index)
        described = recorded or object_at(entry, "template")
        api_version, kind = text_at(described, "apiVersion"), text_at(described, "kind")
        if _API_VERSION.fullmatch(api_version) and _KIND.fullmatch(kind):
            found[api_version, kind, text_at(recorded, "namespace"), text_at(recorded, "name")] = None
    return found


def _itself(managed: AnyObject) -> Names:
    document, meta = managed.document, object_at(managed.document, "metadata")
    return [
        (text_at(document, "apiVersion"), text_at(document, "kind"), text_at(meta, "namespace"), text_at(meta, "name"))
    ]


def _holder(handle: KubeObject) -> Names:
    holder = holder_of(handle.document)
    return [holder] if holder else []


def _pool(handle: KubeObject) -> Names:
    name = _spec(handle, "resourcePool", "name")
    return [(_spec(handle, "resourcePool", "namespace"), name)] if name else []


def _spec(each: KubeObject, *path: str) -> str:
    return text_at(each.document, "spec", *path)


def _health(handle: KubeObject) -> tuple[bool | None, ...]:
    return tuple(flag_at(handle.document, "status", field) for field in ("healthy", "ready"))


def _condition(handle: KubeObject) -> Hashable:
    return _health(handle), paused(handle.document)


def _fit(handle: KubeObject) -> Hashable:
    """What a match depends on: the handle's generation, and whether it is unhealthy."""
    return handle.metadata.generation, _health(handle)[0] is not False


def _as_rendered(provider: KubeObject) -> Hashable:
    """The parts of a provider that a pass reads."""
    # Not the generation: ResourceProviders have no status subresource, so status writes raise the generation.
    meta = provider.metadata
    annotations = {name: value for name, value in meta.annotations.items() if name not in UNREAD_ANNOTATIONS}
    return _field(provider, "spec"), _sorted(meta.labels), _sorted(annotations)


def _requested_scale(scaling: KubeObject) -> Hashable:
    return _field(scaling, "spec"), _field(scaling, "status"), scaling.metadata.deleting


def _field(each: KubeObject, name: str) -> str:
    return json.dumps(value_at(each.document, name), sort_keys=True, default=str)


def _requester(namespace: KubeObject) -> Hashable:
    return namespace.metadata.annotations.get(NAMESPACE_REQUESTER_ANNOTATION, "")


def _sorted(values: Mapping[str, str]) -> Hashable:
    return tuple(sorted(values.items()))
