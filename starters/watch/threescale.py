"""What the 3scale area watches: its kinds and Secrets, and who waits for whom.

| change of | wakes, besides itself |
|---|---|
| any object, in what others see of it | whoever refers to one of its names (`domain/threescale/wakes.py`) |
| any object that goes, or is called otherwise in 3scale | those that are called as it was |
| any object that says to be in another tenant | those that are called as it is: there, and where Invalid or Failed |
| any new object | the sweep over all tenants; those called as it is that are younger (a new watcher finds old ones) |
| Product: which backends it uses, its going | Backends that are being deleted and wait for it |
| Product: that it is in step anew, its end | Backends and policies of its namespace that are being deleted |
| Application: its going | its product and its account, which 3scale may have refused something because of it |
| ProxyConfigPromote: its success | its Product and the Backends of that, unless in step: gateways count otherwise now |
| DeveloperUser | its account, which is made together with its first admin |
| Secret | whoever refers to it; an account whose admin's password it has; who uses its tenant, unless in step |
| APIManager | whoever looks for its tenant there, as no Secret is named |

What others see of an object is its spec, its ids, how it stands, what it remembers (a backend's part of the gateway),
and that it goes. An object's own status is input too: people blank ids.

Secrets are watched in the namespaces that objects name, as long as they do, Helm's releases left out; many namespaces
by one watch of the whole cluster where rights allow it. Of a Secret only its metadata is asked for, and only its name
and version are kept. APIManagers, which hardly any cluster has, are watched as long as an object may look for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial

from domain.built_in_kinds import API_MANAGER
from domain.custom_resources import custom_resources
from domain.identity import Key
from domain.levers import RETRIED, RETRY
from domain.reading import Malformed, read
from domain.resource import CustomResource
from domain.threescale import (
    APPLICATION,
    BACKEND,
    CUSTOM_KINDS,
    CUSTOM_POLICY_DEFINITION,
    DEVELOPER_ACCOUNT,
    DEVELOPER_USER,
    OPEN_API,
    PRODUCT,
    PROXY_CONFIG_PROMOTE,
    THE_TENANTS,
)
from domain.threescale.conditions import FAILED, IN_SYNC, INVALID, ORPHAN, READY, WAITING
from domain.threescale.conditions import SYNCED as SYNCED_CONDITION
from domain.threescale.digests import DRIFT, LOOKED
from domain.threescale.providers import SEED_SECRET, same_tenant
from domain.threescale.wakes import called, known_as, refers_to, seen_by_others
from domain.threescale.work import Phase
from engine.kube import SECRET, JsonObject
from engine.kube.json import mapping, sequence, text
from starters.watch.index import Index
from starters.watch.kinds import Watched
from starters.watch.projection import Projection, View, generation, others_finalizers

AREA = "threescale"

# A namespace's objects come and go; listing its Secrets anew each time would cost more than watching on.
SECRETS_LINGER = 300.0
_MODELS = {model.kind_of.name: model for model in custom_resources() if model.kind_of in CUSTOM_KINDS}
_DONE = frozenset({SYNCED_CONDITION, READY})
_REFUSED = frozenset({Phase.INVALID.value, Phase.FAILED.value})
_WAITS = frozenset({ORPHAN, WAITING})
# The first condition that is True says it.
_PHASES = (
    (SYNCED_CONDITION, Phase.SYNCED),
    (READY, Phase.SYNCED),
    (INVALID, Phase.INVALID),
    (ORPHAN, Phase.ORPHAN),
    (WAITING, Phase.ORPHAN),
    (FAILED, Phase.FAILED),
    (IN_SYNC, Phase.SYNCING),
)


def read_object(kind: str, obj: JsonObject) -> View:
    """An object of the area."""
    resource = read(_MODELS[kind], obj)
    if isinstance(resource, Malformed):
        return View((resource.problem, generation(obj), _annotations(obj)))
    meta, status = resource.metadata, mapping(obj, "status")
    made_by_another = any(each.kind == OPEN_API.name for each in meta.owner_references)
    return View(
        fingerprint=(
            generation(obj),
            others_finalizers(obj, resource.kind_of.finalizer),
            _annotations(obj),
            _standing(status),
            tuple(sorted(each.uid for each in meta.owner_references)),
        ),
        # An OpenAPI's workflow writes the spec of what it has made; the sweep writes an annotation.
        handed=(generation(obj) if made_by_another else None, meta.annotations.get(DRIFT, "")),
        settled=_is_settled(resource, status),
        facts={
            "names": "\n".join(known_as(resource)),
            "refers": "\n".join(refers_to(resource)),
            "called": called(resource),
            "seen": str(hash(seen_by_others(resource))),
            "born": text(obj, "metadata", "creationTimestamp"),
            "home": text(status, "providerAccountHost"),
            "phase": _phase(meta.deleting, status),
            "waits since": _waits_since(status),
        },
    )


def read_secret(obj: JsonObject) -> View:
    """A Secret: that it is there, and its version, which moves with every change of it."""
    return View((text(obj, "metadata", "resourceVersion"),), settled=True)


def object_dependents(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
    """Whom a change of an object concerns."""
    sides = [side for side in (before, after) if side is not None]
    if before and after and _told(before) == _told(after):
        return _let_go_of(before, after, index)
    names = {name for side in sides for name in side.fact("names").splitlines()}
    concerned = {each.key for name in names for each in _referring(name, index)}
    for side in sides:
        concerned |= _waiting_backends(side, index)
    if before is not None and (after is None or after.deleting or before.fact("called") != after.fact("called")):
        concerned |= {each.key for each in _called_alike(before, index)}
    elif after is not None and before is not None and before.fact("home") != after.fact("home"):
        concerned |= {each.key for each in _called_alike(after, index) if _may_yield(each, after)}
    elif after is not None and not before:
        concerned |= {each.key for each in _called_alike(after, index) if _may_be_younger(each, after)}
        concerned.add(THE_TENANTS.model_copy(update={"cluster": after.key.cluster}))
    if after is None and before is not None:
        concerned |= _referents(before, index)
    if before and after and after.settled and not before.settled and after.key.kind == PROXY_CONFIG_PROMOTE.name:
        concerned |= _waiting_for_promotion(after, index)
    if before is not None:
        concerned |= _let_go_of(before, after, index)
    return concerned - {side.key for side in sides}


def secret_dependents(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
    """Whoever refers to the Secret; and the accounts of users whose password it has."""
    known = after or before
    if known is None:
        return set()
    found = _referring(f"Secret/{known.key.namespace}/{known.key.name}", index)
    users = [each for each in found if each.key.kind == DEVELOPER_USER.name]
    accounts = {key for user in users for key in _referents(user, index)}
    return {each.key for each in found} | accounts | _of_their_tenants(found, index)


def read_installation(obj: JsonObject) -> View:
    """An APIManager: what makes the address of its tenant."""
    spec = mapping(obj, "spec")
    return View((text(spec, "tenantName"), text(spec, "wildcardDomain")), settled=True)


def installation_dependents(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
    """Whoever looks for a local 3scale in its namespace: those that draw on the token of one."""
    known = after or before
    found = _referring(_seed_of(known.key.namespace), index) if known else []
    return {each.key for each in found} | _of_their_tenants(found, index)


def _seed_of(namespace: str) -> str:
    return f"{SECRET.name}/{namespace}/{SEED_SECRET}"


def _referring(name: str, index: Index) -> list[Projection]:
    return [each for kind in CUSTOM_KINDS for each in index.find(kind.name, "refers", name)]


def _referents(known: Projection, index: Index) -> set[Key]:
    """Products and accounts that an object refers to."""
    names = [name for name in known.fact("refers").splitlines() if name.startswith(("Product/", "DeveloperAccount/"))]
    kinds = (PRODUCT, DEVELOPER_ACCOUNT)
    return {each.key for name in names for kind in kinds for each in index.find(kind.name, "names", name)}


def _of_their_tenants(found: list[Projection], index: Index) -> set[Key]:
    """Applications of those accounts and promotions of those products, which name no tenant, unless in step."""
    users = {DEVELOPER_ACCOUNT.name: APPLICATION.name, PRODUCT.name: PROXY_CONFIG_PROMOTE.name}
    named = [(users[each.key.kind], each.fact("names")) for each in found if each.key.kind in users]
    using = (each for kind, names in named for name in names.splitlines() for each in index.find(kind, "refers", name))
    return {each.key for each in using if not each.settled}


def _waiting_backends(product: Projection, index: Index) -> set[Key]:
    """Backends that are being deleted and that a product uses."""
    if product.key.kind != PRODUCT.name:
        return set()
    return {each.key for each in _backends_of(product, index) if each.deleting}


def _let_go_of(before: Projection, after: Projection | None, index: Index) -> set[Key]:
    """What is being deleted, and what a product may have used in 3scale until now, whatever its spec says."""
    if before.key.kind != PRODUCT.name or (after is not None and (before.settled or not after.settled)):
        return set()
    kinds = (BACKEND, CUSTOM_POLICY_DEFINITION)
    going = (each for kind in kinds for each in index.find(kind.name, "phase", Phase.DELETING.value))
    return {each.key for each in going if each.key.namespace == before.key.namespace}


def _waiting_for_promotion(promotion: Projection, index: Index) -> set[Key]:
    """The product and its backends, one of which may have to let go of what production has counted until now."""
    names = promotion.fact("refers").splitlines()
    products = [each for name in names for each in index.find(PRODUCT.name, "names", name)]
    backends = [backend for each in products for backend in _backends_of(each, index)]
    return {each.key for each in (*products, *backends) if not each.settled}


def _backends_of(product: Projection, index: Index) -> list[Projection]:
    used = [name for name in product.fact("refers").splitlines() if name.startswith("Backend/")]
    return [each for name in used for each in index.find(BACKEND.name, "names", name)]


def _called_alike(known: Projection, index: Index) -> list[Projection]:
    name = known.fact("called")
    return index.find(known.key.kind, "called", name) if name else []


def _may_be_younger(one: Projection, than: Projection) -> bool:
    """Whether an object may be the younger of two: times are whole seconds."""
    return one.fact("born") >= than.fact("born")


def _may_yield(one: Projection, to: Projection) -> bool:
    """Whether one called alike may have stood back for what has moved, or has to from now on."""
    return one.fact("phase") in _REFUSED or same_tenant(one.fact("home"), to.fact("home"))


def _told(known: Projection) -> tuple[object, ...]:
    return known.fact("seen"), known.fact("names"), known.fact("refers"), known.fact("called"), known.deleting


def _standing(status: Mapping[str, object]) -> tuple[object, ...]:
    """The status without its times, and without what is told of a sync that lasts: nothing follows from that."""
    fields = sorted((name, repr(value)) for name, value in status.items() if name != "conditions")
    conditions = sorted(
        (text(each, "type"), text(each, "status"), text(each, "message"))
        for each in sequence(status, "conditions")
        if text(each, "type") != IN_SYNC
    )
    return tuple(fields), tuple(conditions)


def _is_settled(resource: CustomResource, status: Mapping[str, object]) -> bool:
    """Whether it says to be in 3scale as its newest spec wants it, and nobody asks for a look."""
    annotations = resource.metadata.annotations
    asked = annotations.get(RETRY) != annotations.get(RETRIED) or annotations.get(DRIFT) != annotations.get(LOOKED)
    observed = status.get("observedGeneration", resource.metadata.generation)
    true_ones = {text(c, "type") for c in sequence(status, "conditions") if text(c, "status") == "True"}
    done = bool(true_ones & _DONE) and IN_SYNC not in true_ones
    kept = not resource.kind_of.finalizer or resource.kind_of.finalizer in resource.metadata.finalizers
    return done and kept and not asked and observed == resource.metadata.generation


def _phase(deleting: bool, status: Mapping[str, object]) -> str:
    """The phase that its status shows."""
    if deleting:
        return Phase.DELETING.value
    true_ones = {text(c, "type") for c in sequence(status, "conditions") if text(c, "status") == "True"}
    return next((phase.value for type_, phase in _PHASES if type_ in true_ones), Phase.NEW.value)


def _waits_since(status: Mapping[str, object]) -> str:
    waits = (c for c in sequence(status, "conditions") if text(c, "type") in _WAITS and text(c, "status") == "True")
    return min((text(each, "lastTransitionTime") for each in waits), default="")


def _annotations(obj: JsonObject) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, str(value)) for name, value in mapping(obj, "metadata", "annotations").items()))


def sources_named(known: Projection) -> tuple[Watched, ...]:
    """The Secrets of the namespaces in which an object names one; APIManagers, where one may say whose it is."""
    refers = known.fact("refers").splitlines()
    named = (name.split("/") for name in refers)
    secrets = [_secrets_in(namespace) for namespace in sorted({name[1] for name in named if name[0] == SECRET.name})]
    return (*secrets, *((_INSTALLATIONS,) if _seed_of(known.key.namespace) in refers else ()))


_ALL_SECRETS = Watched(
    kind=SECRET,
    name="Secrets of all namespaces",
    field_selector="type!=helm.sh/release.v1",
    read=read_secret,
    dependents=secret_dependents,
    has_workflow=False,
    metadata_only=True,
)


@cache
def _secrets_in(namespace: str) -> Watched:
    return replace(
        _ALL_SECRETS,
        name=f"Secrets in {namespace}",
        namespace=namespace,
        lingers=SECRETS_LINGER,
        wider=_ALL_SECRETS,
    )


_INSTALLATIONS = Watched(
    kind=API_MANAGER,
    read=read_installation,
    dependents=installation_dependents,
    has_workflow=False,
    lingers=SECRETS_LINGER,
)

WATCHED = tuple(
    Watched(kind=kind, read=partial(read_object, kind.name), dependents=object_dependents, declares=sources_named)
    for kind in CUSTOM_KINDS
)
