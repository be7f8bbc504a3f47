"""The lifecycle of a CustomPolicyDefinition: a tenant's own policy for its products' chains.

    New ─► found by name and version, or created ─► Ready ─new schema─► Ready ─deletion─► deleted when no chain uses it

3scale refuses to change or delete a policy while a product's chain uses the policy.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import ClassVar

from domain.decision import Decision
from domain.schema import Json, JsonObject
from domain.threescale.calls import Read, Resource, Sync, change, creation, deletion, read_entry
from domain.threescale.deletion import Leaving, deprovision, leaving_of_one
from domain.threescale.digests import digest, digests_of
from domain.threescale.duplicate_owners import elder
from domain.threescale.idempotent_creations import created
from domain.threescale.normalize import described, same_json
from domain.threescale.observed import ObservedOne, invalid
from domain.threescale.remote_object import One
from domain.threescale.remote_state import FoundPolicy
from domain.threescale.resources import CustomPolicyDefinition
from domain.threescale.resources.shared import Digests

_PATH = "registry/policies"


class ObservedPolicy(ObservedOne):
    item: ClassVar[type[FoundPolicy]] = FoundPolicy
    wrapper: ClassVar[Resource] = Resource.POLICY

    resource: CustomPolicyDefinition
    found: One[FoundPolicy] = One()

    def decide(self, now: datetime) -> Decision:
        return deprovision(self, _leaving, now) or self.begins(now) or _decided(self, now)

    def is_it(self, found: FoundPolicy) -> bool:
        return is_policy(found, self.resource)


def _decided(observed: ObservedPolicy, now: datetime) -> Decision:
    fields: dict[str, object] = {"provider_account_host": observed.provider.url}
    older = elder(observed.resource.metadata, observed.siblings)
    if older is not None:
        message = f"CustomPolicyDefinition {older.namespace}/{older.name} has this name and version already"
        return observed.blocked(invalid(message), now, fields)
    return observed.taken(now, fields) or _synced(observed, fields, now)


def is_policy(found: FoundPolicy, policy: CustomPolicyDefinition) -> bool:
    return (found.name, found.version) == (policy.spec.name, policy.spec.version)


def sync_policy(policy: CustomPolicyDefinition, found: One[FoundPolicy], known_id: int = 0) -> Sync:
    spec = policy.spec
    if not found.looked:
        return Sync(reads=(read_entry(Resource.POLICY, _PATH, 0 if found.lost else known_id),))
    fields: dict[str, Json] = {"name": spec.name, "version": spec.version, "schema": _schema(policy)}
    about = f"{spec.name} {spec.version}"
    if found.item is None:
        key = {"name": spec.name, "version": spec.version}
        return Sync(writes=(creation(Resource.POLICY, _PATH, fields, key, about),))
    there = found.item
    if is_policy(there, policy) and same_json(described(there.schema_), _schema(policy)):
        return Sync()
    return Sync(writes=(change(Resource.POLICY, _PATH, there.id, fields, about),))


def _schema(policy: CustomPolicyDefinition) -> JsonObject:
    return described(policy.spec.schema_.model_dump(mode="json"))


def _synced(observed: ObservedPolicy, fields: dict[str, object], now: datetime) -> Decision:
    policy, found = observed.resource, observed.found
    desired = Digests(synced=digest(observed.provider.url, policy.spec))
    settled = desired == digests_of(policy) and policy.status.policy_id
    if settled and not observed.look and found.untouched:
        return observed.fine(now, fields)
    whole = sync_policy(policy, found, observed.known_id)
    if found.item is not None:
        fields = {**fields, "policy_id": found.item.id}
    return observed.compared(whole, now, fields, desired)


def _leaving(observed: ObservedPolicy) -> Leaving:
    policy = observed.resource
    alone = all(each.deleting for each in observed.siblings)
    look = Read(resource=Resource.POLICY, path=_PATH) if alone and created(policy.metadata) else None
    deletes = partial(deletion, Resource.POLICY, _PATH, about=f"{policy.spec.name} {policy.spec.version}")
    return leaving_of_one(Leaving(holders=observed.holders), observed.found, observed.known_id, look, deletes)
