"""The lifecycle of a CustomPolicyDefinition: a policy of the tenant's own, for the chains of its products.

    New ─► found by name and version, or created ─► Ready ─new schema─► Ready ─deletion─► deleted, once no chain has it

3scale refuses to change or delete a policy that is in a chain; the refusal is shown, and the call is tried again.
"""

from __future__ import annotations

from datetime import datetime

from domain.resource import ObjectMeta
from domain.schema import Json, JsonObject
from domain.threescale import CUSTOM_POLICY_DEFINITION
from domain.threescale.calls import Read, Resource, Write
from domain.threescale.conditions import Standing
from domain.threescale.digests import created, digest, digests_of
from domain.threescale.found import FoundPolicy
from domain.threescale.holders import Holder
from domain.threescale.normalize import described, same_json
from domain.threescale.product_sync import Sync
from domain.threescale.providers import NoAccount, ProviderAccount, known_at
from domain.threescale.references import elder
from domain.threescale.remote_object import One
from domain.threescale.resources import CustomPolicyDefinition
from domain.threescale.resources.shared import Digests
from domain.threescale.work import (
    Blocker,
    Leaving,
    Observed,
    Phase,
    Work,
    adopted,
    blocked,
    compared,
    deprovision,
    fine,
    lets_go,
    without_account,
)

_PATH = "registry/policies"


class ObservedPolicy(Observed):
    """What one decision sees.

    Attributes:
        policy: the object.
        account: its tenant.
        siblings: others with its name, version and tenant.
        holders: those siblings that have something there, with its id.
        found: what is known of 3scale.
    """

    policy: CustomPolicyDefinition
    account: ProviderAccount | NoAccount
    siblings: tuple[ObjectMeta, ...] = ()
    holders: tuple[Holder, ...] = ()
    found: One[FoundPolicy] = One()


def work_for_policy(observed: ObservedPolicy, now: datetime) -> Work:
    """What to do now for a CustomPolicyDefinition that exists."""
    policy, account = observed.policy, observed.account
    if policy.metadata.deleting:
        return deprovision(policy, _leaving(observed), observed.refusals, now)
    patch = adopted(policy.metadata, CUSTOM_POLICY_DEFINITION, {})
    if patch:
        return Work(phase=Phase.NEW, why="set its finalizer", patch=patch)
    if isinstance(account, NoAccount):
        return without_account(policy, account, now)
    fields: dict[str, object] = {"provider_account_host": account.url}
    older = elder(policy.metadata, observed.siblings)
    if older is not None:
        message = f"CustomPolicyDefinition {older.namespace}/{older.name} has this name and version already"
        return blocked(policy, Blocker(standing=Standing.INVALID, message=message), now, fields)
    return _synced(observed, account, fields, now)


def is_policy(found: FoundPolicy, policy: CustomPolicyDefinition) -> bool:
    """Whether one of the registry's policies is this one."""
    return (found.name, found.version) == (policy.spec.name, policy.spec.version)


def sync_policy(policy: CustomPolicyDefinition, found: One[FoundPolicy], known_id: int = 0) -> Sync:
    """What to read or write now."""
    spec = policy.spec
    if not found.looked:
        by_id = known_id if not found.lost else 0
        path = f"{_PATH}/{by_id}" if by_id else _PATH
        return Sync(reads=(Read(resource=Resource.POLICY, path=path, of=by_id),))
    fields: dict[str, Json] = {"name": spec.name, "version": spec.version, "schema": _schema(policy)}
    about = f"{spec.name} {spec.version}"
    if found.item is None:
        key: dict[str, Json] = {"name": spec.name, "version": spec.version}
        write = Write(resource=Resource.POLICY, method="POST", path=_PATH, fields=fields, key=key, about=about)
        return Sync(writes=(write,))
    there = found.item
    if is_policy(there, policy) and same_json(described(there.schema_), _schema(policy)):
        return Sync()
    path = f"{_PATH}/{there.id}"
    write = Write(resource=Resource.POLICY, method="PUT", path=path, id=there.id, fields=fields, about=about)
    return Sync(writes=(write,))


def _schema(policy: CustomPolicyDefinition) -> JsonObject:
    return described(policy.spec.schema_.model_dump(mode="json"))


def _synced(observed: ObservedPolicy, account: ProviderAccount, fields: dict[str, object], now: datetime) -> Work:
    policy, found = observed.policy, observed.found
    wished = Digests(synced=digest(account.url, policy.spec))
    settled = wished == digests_of(policy) and policy.status.policy_id
    if settled and not observed.look and found.untouched:
        return fine(policy, now, fields)
    whole = sync_policy(
        policy, found, known_at(account.url, policy.status.provider_account_host, policy.status.policy_id)
    )
    if found.item is not None:
        fields = {**fields, "policy_id": found.item.id}
    return compared(policy, whole, observed.refusals, now, fields, wished)


def _leaving(observed: ObservedPolicy) -> Leaving:
    policy, account = observed.policy, observed.account
    known_id = known_at(account.url, policy.status.provider_account_host, policy.status.policy_id)
    leaving = Leaving(account=account, outside=policy.outside, holders=observed.holders)
    alone = all(each.deleting for each in observed.siblings)
    look = Read(resource=Resource.POLICY, path=_PATH) if alone and created(policy.metadata) else None
    return lets_go(leaving, observed.found, known_id, look, lambda id_: _deletion(policy, id_))


def _deletion(policy: CustomPolicyDefinition, id_: int) -> Write:
    about = f"{policy.spec.name} {policy.spec.version}"
    return Write(resource=Resource.POLICY, method="DELETE", path=f"{_PATH}/{id_}", id=id_, about=about)
