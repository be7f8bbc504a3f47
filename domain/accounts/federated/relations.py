from __future__ import annotations

from domain import control_annotations
from domain.accounts.constants import FINALIZER
from domain.accounts.federated.access_status import SYNCED
from domain.accounts.federated.resources import AccessState, AWSFederatedAccountAccess, AWSFederatedRole
from domain.accounts.resources import AccountClaim
from domain.built_in_kinds import SECRET
from domain.relations import News, On, Relation, Scope, WhileNamed, Whom, version
from domain.resource import condition_of


def is_settled(access: AWSFederatedAccountAccess) -> bool:
    meta, status = access.metadata, access.status
    synced = condition_of(status.conditions, SYNCED)
    works = status.state == AccessState.READY and bool(status.granted)
    refused = synced is not None and synced.status == "False"
    return works and not refused and FINALIZER in meta.finalizers and not control_annotations.retry_wanted(meta)


def _key_awaited(access: AWSFederatedAccountAccess) -> list[tuple[str, str]]:
    name = access.spec.aws_customer_credential_secret.name
    waits = not is_settled(access) or access.metadata.deleting
    return [(access.metadata.namespace, name)] if name and waits else []


def _role_of(access: AWSFederatedAccountAccess) -> list[tuple[str, str]]:
    role = access.spec.aws_federated_role
    return [(role.namespace, role.name)]


RELATIONS = (
    # A deleted role waits for its accesses.
    Relation(
        of=AWSFederatedAccountAccess,
        to=AWSFederatedRole,
        by=_role_of,
        matters=News(lambda role: (role.metadata.generation, role.metadata.deleting)),
        news=News(whom=Whom.DELETING),
        required=True,
    ),
    # A deleted claim waits for the accesses of its namespace.
    Relation(
        of=AWSFederatedAccountAccess,
        to=AccountClaim,
        by=lambda access: [access.metadata.namespace],
        known_as=lambda claim: [claim.metadata.namespace],
        news=News(on=frozenset({On.GOES}), whom=Whom.DELETING),
    ),
    Relation(
        of=AWSFederatedAccountAccess,
        to=SECRET,
        by=_key_awaited,
        matters=News(version),
        watched=WhileNamed(Scope.NAME, "key for federated access", "keys for federated access"),
    ),
)
