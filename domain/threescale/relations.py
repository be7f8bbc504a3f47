"""Relations among 3scale's objects, and which changes matter; the names are in `reference_names.py`.

| change of | wakes, besides itself |
|---|---|
| any object: fields that others read | objects that refer to it |
| any object: deletion, new name or tenant | objects with its former or new name in 3scale, if they may conflict |
| Application, DeveloperUser: id, deletion | objects with the same account and name, which may adopt the same entry |
| Tenant: deletion | unsettled objects that use its token |
| any object: creation | the sweep over all tenants; younger objects with its name |
| Product: fields that others read | Backends that it uses and that are being deleted |
| Product: in sync again, deletion | Backends of its namespace that are being deleted, unsettled policies |
| any object: deletion | referenced Products and accounts, whose changes 3scale may have refused because of the object |
| ProxyConfigPromote: success | its Product and the Product's Backends, if unsettled |
| Secret | its referrers; the accounts of referring users; unsettled Applications and promotions in its tenant |
| APIManager | objects that use its tenant without a Secret reference |

Secrets are watched in the referenced namespaces, APIManagers only while an object may need an APIManager.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import cache
from typing import Any, ClassVar

from domain.built_in_kinds import API_MANAGER, SECRET
from domain.control_annotations import RETRIED, RETRY
from domain.custom_resources import custom_resources
from domain.identity import Kind
from domain.relations import News, On, Relation, Scope, WhileNamed, Whom, version
from domain.resource import CustomResource, KubeModel, ObjectMeta
from domain.threescale import CUSTOM_KINDS, THE_TENANTS
from domain.threescale.conditions import FAILED, IN_SYNC, INVALID, ORPHAN, READY, SYNCED, WAITING
from domain.threescale.drift_schedule import DRIFT, LOOKED
from domain.threescale.observed import Phase
from domain.threescale.provider_account import SEED_SECRET, same_tenant
from domain.threescale.reference_names import called, known_as, refers_to, seen_by_others
from domain.threescale.remote_ids import host_of, remembered_id
from domain.threescale.resources import (
    Application,
    Backend,
    CustomPolicyDefinition,
    DeveloperAccount,
    DeveloperUser,
    Product,
    ProxyConfigPromote,
    Tenant,
)

MODELS = tuple(model for model in custom_resources() if model.kind_of in CUSTOM_KINDS)
# The first condition of this list that is True decides.
_PHASES = (
    (SYNCED, Phase.SYNCED),
    (READY, Phase.SYNCED),
    (INVALID, Phase.INVALID),
    (ORPHAN, Phase.ORPHAN),
    (WAITING, Phase.ORPHAN),
    (FAILED, Phase.FAILED),
    (IN_SYNC, Phase.SYNCING),
)


class InstallationSpec(KubeModel):
    tenant_name: str = ""
    wildcard_domain: str = ""


class Installation(KubeModel):
    kind_of: ClassVar[Kind] = API_MANAGER

    metadata: ObjectMeta = ObjectMeta()
    spec: InstallationSpec = InstallationSpec()


def phase_of(resource: CustomResource) -> Phase:
    if resource.metadata.deleting:
        return Phase.DELETING
    true_ones = _true_conditions(resource)
    return next((phase for type_, phase in _PHASES if type_ in true_ones), Phase.NEW)


def is_settled(resource: CustomResource) -> bool:
    meta, status = resource.metadata, getattr(resource, "status", None)
    pending = any(meta.annotations.get(each) != meta.annotations.get(done) for each, done in _REQUESTS)
    observed = getattr(status, "observed_generation", None)
    true_ones = _true_conditions(resource)
    done = bool(true_ones & {SYNCED, READY}) and IN_SYNC not in true_ones
    has_finalizer = not resource.kind_of.finalizer or resource.kind_of.finalizer in meta.finalizers
    return done and has_finalizer and not pending and not meta.deleting and observed in (None, meta.generation)


_REQUESTS = ((RETRY, RETRIED), (DRIFT, LOOKED))


def _true_conditions(resource: CustomResource) -> set[str]:
    conditions = getattr(getattr(resource, "status", None), "conditions", None) or ()
    return {each.type for each in conditions if each.status == "True"}


# References.


@cache
def _named(*kinds: type[CustomResource]) -> Callable[[CustomResource], list[str]]:
    prefixes = tuple(f"{kind.kind_of.name}/" for kind in kinds)
    return lambda resource: [each for each in refers_to(resource) if each.startswith(prefixes)]


def _secrets(resource: CustomResource) -> list[tuple[str, str]]:
    named = (each.split("/", 2) for each in refers_to(resource))
    return [(namespace, name) for kind, namespace, name in named if kind == SECRET.name]


def _installation(resource: CustomResource) -> list[tuple[str, str]]:
    namespace = resource.metadata.namespace
    return [(namespace, "")] if (namespace, SEED_SECRET) in _secrets(resource) else []


def _namespace(resource: Any) -> Iterable[Hashable]:
    return [resource.metadata.namespace]


def _called(resource: CustomResource) -> Iterable[Hashable]:
    return [called(resource)] if called(resource) else []


# Changes that matter.


def _seen(resource: CustomResource) -> Hashable:
    return seen_by_others(resource), resource.metadata.deleting


def _in_step(resource: CustomResource) -> frozenset[Hashable]:
    return frozenset({"in step"} if is_settled(resource) else ())


def _going(resource: CustomResource) -> frozenset[Hashable]:
    return frozenset({"going"} if resource.metadata.deleting else ())


def _same_use(application: Application) -> Iterable[Hashable]:
    spec = application.spec
    return [(application.metadata.namespace, spec.account_cr.name, spec.product_cr.name, spec.name)]


def _same_login(user: DeveloperUser) -> Iterable[Hashable]:
    return [(user.metadata.namespace, user.spec.developer_account_ref.name, user.spec.username)]


def _tokens(tenant: CustomResource) -> list[str]:
    return [each for each in refers_to(tenant) if each.startswith(f"{SECRET.name}/")]


def _rank(resource: CustomResource) -> tuple[str, str, bool]:
    refused = phase_of(resource) in (Phase.INVALID, Phase.FAILED)
    return str(resource.metadata.creation_timestamp or ""), host_of(resource), refused


def _may_be_younger(new: tuple[str, str, bool], other: tuple[str, str, bool]) -> bool:
    """Equal creation times count as younger, because they are whole seconds."""
    return other[0] >= new[0]


def _may_yield(moved: tuple[str, str, bool], other: tuple[str, str, bool]) -> bool:
    return other[2] or same_tenant(other[1], moved[1])


def _wakes_duplicates(news: News[CustomResource]) -> Relation:
    return Relation(of=MODELS, to=MODELS, by=_called, known_as=_called, news=news, trait=_rank)


_NOWHERE: frozenset[On] = frozenset()
_CHANGES_OR_GOES = frozenset({On.CHANGES, On.GOES})
_USER_TO_ACCOUNT = Relation(
    of=DeveloperUser, to=DeveloperAccount, by=_named(DeveloperAccount), known_as=known_as, news=News(on=_NOWHERE)
)
# Kinds without a tenant reference of their own: they use that of their account or product.
_THEIRS = tuple(
    Relation(of=user, to=to, by=_named(to), known_as=known_as, matters=News(on=_NOWHERE, whom=Whom.UNSETTLED))
    for user, to in ((Application, DeveloperAccount), (ProxyConfigPromote, Product))
)
_PRODUCT_TO_BACKENDS = Relation(
    of=Product, to=Backend, by=_named(Backend), known_as=known_as, news=News(on=_NOWHERE, whom=Whom.UNSETTLED)
)

RELATIONS = (
    Relation(of=MODELS, to=MODELS, by=refers_to, known_as=known_as, matters=News(_seen)),
    _wakes_duplicates(News(_going, on=_CHANGES_OR_GOES)),
    _wakes_duplicates(News(host_of, on=frozenset({On.CHANGES}), among=_may_yield)),
    _wakes_duplicates(News(on=frozenset({On.COMES}), among=_may_be_younger)),
    *(
        Relation(of=model, to=model, by=same, known_as=same, news=News(remembered_id, on=_CHANGES_OR_GOES))
        for model, same in ((Application, _same_use), (DeveloperUser, _same_login))
    ),
    Relation(
        of=Tenant,
        to=MODELS,
        by=_tokens,
        known_as=_tokens,
        news=News(_going, on=_CHANGES_OR_GOES, whom=Whom.UNSETTLED),
    ),
    Relation(of=MODELS, to=THE_TENANTS, news=News(on=frozenset({On.COMES}))),
    Relation(of=Product, to=Backend, by=_named(Backend), known_as=known_as, news=News(_seen, whom=Whom.DELETING)),
    *(
        Relation(
            of=Product, to=used, by=_namespace, known_as=_namespace, news=News(_in_step, on=_CHANGES_OR_GOES, whom=whom)
        )
        for used, whom in ((Backend, Whom.DELETING), (CustomPolicyDefinition, Whom.UNSETTLED))
    ),
    Relation(
        of=MODELS,
        to=(Product, DeveloperAccount),
        by=_named(Product, DeveloperAccount),
        known_as=known_as,
        news=News(on=frozenset({On.GOES})),
    ),
    Relation(
        of=ProxyConfigPromote,
        to=Product,
        by=_named(Product),
        known_as=known_as,
        news=News(_in_step, on=frozenset({On.CHANGES}), whom=Whom.UNSETTLED, onward=(_PRODUCT_TO_BACKENDS,)),
    ),
    _PRODUCT_TO_BACKENDS,
    _USER_TO_ACCOUNT,
    *_THEIRS,
    Relation(
        of=MODELS,
        to=SECRET,
        by=_secrets,
        matters=News(version, onward=(_USER_TO_ACCOUNT, *_THEIRS)),
        watched=WhileNamed(Scope.NAMESPACE, "Secrets in", "Secrets of all namespaces"),
    ),
    Relation(
        of=MODELS,
        to=Installation,
        by=_installation,
        known_as=lambda installation: [(installation.metadata.namespace, "")],
        matters=News(lambda each: (each.spec.tenant_name, each.spec.wildcard_domain), onward=_THEIRS),
        watched=WhileNamed(Scope.CLUSTER, all=API_MANAGER.name),
    ),
)
