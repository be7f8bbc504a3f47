"""The lifecycle of a Product.

    New ─finalizer, defaults─► Syncing ─► Synced ─new spec, other backends, other Secrets, drift─► Syncing
         any ─► Orphan: a backend or the tenant is missing          any ─► Invalid: its spec or a backend's is wrong
         any ─► Failed: 3scale refuses a call                       any ─deletion─► Deleting ─► gone

If the digest of the desired state differs from the stored digest, the product is compared with 3scale part by part
(`product_sync.py`), and the new digests are stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar, Self

from domain.decision import Decision
from domain.threescale.actions import ShowStatus
from domain.threescale.application_plans import references
from domain.threescale.apply_response import read_product, wrote_product
from domain.threescale.auto_promotion import PRODUCTION, is_promoted_by_itself
from domain.threescale.calls import Read, Resource, Sync, Write
from domain.threescale.cascading_deletion import waits_for_applications
from domain.threescale.deletion import Leaving, deprovision, leaving_of_owner
from domain.threescale.digests import digest, digests_of, remembering
from domain.threescale.faults import message_of
from domain.threescale.issuer_and_policy_secrets import SecretText, with_secrets
from domain.threescale.observed import Blocker, ObservedOwner, blocking, calls, invalid, status_patch, waiting
from domain.threescale.product_sync import Wanted, sync_product, touches_gateway
from domain.threescale.refused_calls import held
from domain.threescale.remote_state import FoundProduct
from domain.threescale.resources import Application, Backend, Product
from domain.threescale.resources.product import ProductSpec
from domain.threescale.resources.shared import Digests
from domain.threescale.spec_defaults import of_product
from domain.threescale.spec_validation import faults_of_paths, faults_of_product
from domain.threescale.system_names import changed_name, taken_name
from domain.threescale.usable_referents import backends_by_name, blocker_of_product


class ObservedProduct(ObservedOwner):
    listed: ClassVar[Resource] = Resource.SERVICE
    path: ClassVar[str] = "services"

    resource: Product
    backends: tuple[Backend, ...] = ()
    applications: tuple[Application, ...] = ()  # observed only while the Product is being deleted with `cascade`
    secrets: tuple[SecretText, ...] = ()  # the values of the keys in `secrets_of(spec)` that exist
    found: FoundProduct = FoundProduct()

    def decide(self, now: datetime) -> Decision:
        return (
            deprovision(self, _leaving, now) or self.begins(now, of_product(self.resource.spec)) or _decided(self, now)
        )

    def read(self, read: Read, body: object) -> Self:
        return self.finding(read, read_product(self.found, read, body, self.resource.spec.system_name))

    def wrote(self, write: Write, body: object) -> Self:
        return self.beside({"found": wrote_product(self.found, write, body)})

    def remembered(self) -> object:
        """3scale's state, with the backends' digests because plans use the backends' metrics; None if unknown."""
        # Configuration versions are read again, because others may deploy and promote.
        remembered = self.found.model_copy(update={"configs": {}})
        return (remembered, self._behind()) if remembered.entry is not None else None

    def recalling(self, remembered: object) -> Self:
        """The remembered state is used only if the backends are unchanged."""
        match remembered:
            case (FoundProduct() as found, behind) if behind == self._behind():
                return self.beside({"found": found})
        return self

    def _behind(self) -> dict[str, Digests]:
        return {each.metadata.uid: digests_of(each) for each in self.backends}


def _decided(observed: ObservedProduct, now: datetime) -> Decision:
    product, url = observed.resource, observed.provider.url
    fields: dict[str, object] = {"provider_account_host": url}
    backends = backends_by_name(product, url, observed.backends)
    spec, lacking = with_secrets(product.spec, product.metadata.namespace, observed.secrets)
    blocker = _blocker(observed, backends, lacking)
    if blocker is not None:
        return observed.blocked(blocker, now, fields)
    if taken := observed.taken(now, fields):
        return taken
    return _synced(observed, spec, {name: backends[name] for name in product.spec.backend_usages}, fields, now)


def _blocker(observed: ObservedProduct, backends: Mapping[str, Backend], lacking: Blocker | None) -> Blocker | None:
    product = observed.resource
    wrong = faults_of_product(product.spec)
    if wrong:
        return invalid(message_of(wrong))
    if taken := taken_name(product, observed.siblings):
        return taken
    if lacking is not None:
        return lacking
    if shared := faults_of_paths(product.spec):
        return invalid(message_of(shared))
    return blocker_of_product(product, backends)


def _synced(
    observed: ObservedProduct,
    spec: ProductSpec,
    backends: Mapping[str, Backend],
    fields: dict[str, object],
    now: datetime,
) -> Decision:
    product = observed.resource
    known_id = observed.known_id
    before, desired = digests_of(product), desired_digests(observed, backends)
    if desired == before and known_id and not observed.look and not observed.found.looked:
        return observed.fine(now, fields)
    if changed := changed_name(observed):
        return observed.blocked(changed, now, fields)
    ids = {name: backend.status.backend_id or 0 for name, backend in backends.items()}
    promote = is_promoted_by_itself(product.metadata) and (observed.look or desired.production != before.production)
    wanted = Wanted(spec=spec, backends=ids, gateway=desired.gateway or "", promote=promote)
    found = observed.found.model_copy(update={"deployed": observed.found.deployed or before.gateway or ""})
    whole = sync_product(wanted, found, known_id)
    refused = blocking(whole, observed.refusals)
    slots = held(refused, now)
    sync = sync_product(wanted, found, known_id, slots) if slots else whole
    decision = calls(sync, slots, *_forgetting(observed, before, desired, sync))
    if decision is not None:
        return decision
    if found.entry is not None:
        fields = {**fields, "product_id": found.entry.id, "state": found.entry.state or None}
    if found.configs.get(PRODUCTION):
        fields["latest_production_version"] = found.configs[PRODUCTION]
    if refused:
        return observed.as_refused(refused, now, fields)
    if whole.missing:
        return observed.blocked(_missing(product, whole), now, fields)
    return observed.fine(now, fields, digests=desired)


def _forgetting(observed: ObservedProduct, before: Digests, desired: Digests, sync: Sync) -> tuple[ShowStatus, ...]:
    if before.gateway != desired.gateway or not any(touches_gateway(each) for each in sync.writes):
        return ()
    product = observed.resource
    return observed.shown(status_patch(product, remembering(product, Digests())))


def _missing(product: Product, sync: Sync) -> Blocker:
    namespace = product.metadata.namespace
    names = tuple(dict.fromkeys(each.partition("/")[0] for each in sync.missing))
    return waiting(
        f"3scale does not have {', '.join(sync.missing)} (yet)", *tuple(f"Backend/{namespace}/{name}" for name in names)
    )


def desired_digests(observed: ObservedProduct, backends: Mapping[str, Backend]) -> Digests:
    """The digests include those of the backends, because gateways use the backends and plans use their metrics."""
    spec = observed.resource.spec
    versions = sorted((each.key.namespace, each.key.name, each.key.key, each.version) for each in observed.secrets)
    known = {name: digests_of(backend) for name, backend in backends.items()}
    ids = {name: backend.status.backend_id for name, backend in backends.items()}
    behind = {name: [ids[name], each.gateway or "", *filter(None, [each.mended])] for name, each in known.items()}
    gateway = digest(
        observed.provider.url, spec.deployment, spec.mapping_rules, spec.backend_usages, spec.policies, versions, behind
    )
    named = {each.backend for each in references(spec.application_plans)}
    counted = {name: each.synced or "" for name, each in known.items() if name in named}
    meta = observed.resource.metadata
    promotes = is_promoted_by_itself(meta) and bool(spec.backend_usages)
    production = gateway if promotes else digests_of(observed.resource).production
    return Digests(synced=digest(spec, gateway, counted), gateway=gateway, production=production)


def _leaving(observed: ObservedProduct) -> Leaving:
    return leaving_of_owner(observed, waits_for_applications(observed.resource, observed.applications))
