"""The defaults that are written into a spec, so that the effective values are visible in the object.

Each function returns fields to merge into `spec`; lists are replaced as a whole. A name without letters or digits
yields no system name (`system_names.py`). A Product or Backend without a name gets no defaults: the API server would
refuse the patch.
"""

from __future__ import annotations

from domain.schema import JsonObject
from domain.threescale.policy_chain import with_apicast
from domain.threescale.resources.backend import BackendSpec
from domain.threescale.resources.documents import ActiveDoc
from domain.threescale.resources.product import ProductSpec
from domain.threescale.resources.shared import HITS
from domain.threescale.resources.tenant import Tenant
from domain.threescale.system_names import system_name_from


def of_product(spec: ProductSpec) -> JsonObject:
    if not spec.name:
        return {}
    fields = _system_name_and_hits(spec)
    chain = with_apicast(spec.policies)
    if any(policy.configuration is None for policy in chain) or len(chain) > len(spec.policies):
        fields["policies"] = [{"configuration": {}, **policy.model_dump(exclude_unset=True)} for policy in chain]
    return fields


def of_backend(spec: BackendSpec) -> JsonObject:
    return _system_name_and_hits(spec)


def of_active_doc(document: ActiveDoc) -> JsonObject:
    spec, fields = document.spec, JsonObject()
    made = system_name_from(spec.name).lower()
    if made and not spec.system_name:
        fields["systemName"] = made
    secret = spec.active_doc_open_api_ref.secret_ref
    if secret is not None and not secret.namespace:
        fields["activeDocOpenAPIRef"] = {"secretRef": {"namespace": document.metadata.namespace}}
    return fields


def of_tenant(tenant: Tenant) -> JsonObject:
    wanted, secret = tenant.spec.tenant_secret_ref, JsonObject()
    if not wanted.name:
        secret["name"] = f"{tenant.metadata.name.lower()}-{tenant.spec.organization_name.lower()}"
    if not wanted.namespace:
        secret["namespace"] = tenant.metadata.namespace
    return {"tenantSecretRef": secret} if secret else {}


def _system_name_and_hits(spec: ProductSpec | BackendSpec) -> JsonObject:
    fields: JsonObject = {}
    if not spec.name:
        return fields
    made = system_name_from(spec.name)
    if made and not spec.system_name:
        fields["systemName"] = made
    if HITS not in spec.metrics:
        hits = {"friendlyName": "Hits", "unit": "hit", "description": "Number of API hits"}
        fields["metrics"] = {HITS: hits}
    return fields
