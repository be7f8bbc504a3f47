"""Values from Secrets for a product's gateway: the issuer's address, and configurations of policies.

A value in the spec has precedence. The Product is an Orphan while a Secret or key is missing, and Invalid if a policy's
value is no JSON object or if `oidc` names no issuer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from domain.model import Model
from domain.schema import Json
from domain.threescale.calls import SecretKey
from domain.threescale.conditions import SyncState
from domain.threescale.faults import Fault, message_of
from domain.threescale.observed import Blocker
from domain.threescale.resources.product import ProductSpec
from domain.threescale.resources.shared import OpenIdConnect, Policy, SecretReference
from domain.writes import merge

ISSUER_KEY = "issuerEndpoint"
CONFIGURATION_KEY = "configuration"


class SecretText(Model):
    """A value from a Secret, which no workflow's history contains."""

    key: SecretKey
    text: str
    version: str = ""


def secrets_of(spec: ProductSpec, namespace: str) -> tuple[SecretKey, ...]:
    wanted = [_key(policy.configuration_ref, namespace, CONFIGURATION_KEY) for policy in spec.policies if _open(policy)]
    oidc = _oidc(spec)
    if oidc and not oidc.issuer_endpoint and oidc.issuer_endpoint_ref:
        wanted.append(_key(oidc.issuer_endpoint_ref, namespace, ISSUER_KEY))
    return tuple(each for each in wanted if each is not None)


def with_secrets(
    spec: ProductSpec, namespace: str, secrets: Iterable[SecretText]
) -> tuple[ProductSpec, Blocker | None]:
    """The spec with the values, and a blocker if a value is missing or unusable."""
    values = {each.key: each.text for each in secrets}
    faults: list[Fault] = []
    policies = []
    for index, policy in enumerate(spec.policies):
        path = f"spec.policies[{index}].configurationRef"
        key = _key(policy.configuration_ref, namespace, CONFIGURATION_KEY) if _open(policy) else None
        configuration = _configuration(path, values.get(key), faults) if key else policy.configuration
        policies.append(policy.model_copy(update={"configuration": configuration or {}}))
    filled = spec.model_copy(update={"policies": tuple(policies)})
    oidc = _oidc(spec)
    if oidc and not oidc.issuer_endpoint:
        key = _key(oidc.issuer_endpoint_ref, namespace, ISSUER_KEY)
        if issuer := values.get(key) if key else None:
            filled = _with_issuer(filled, issuer)
        else:
            detail = "no issuer endpoint found, neither in the spec nor in a Secret"
            faults.append(Fault(path="spec.deployment.authentication.oidc.issuerEndpoint", value="", detail=detail))
    if not faults:
        return filled, None
    keys = secrets_of(spec, namespace)
    missing = [key for key in keys if key not in values]
    waits_for = tuple(dict.fromkeys(f"Secret/{key.namespace}/{key.name}" for key in missing or keys))
    state = SyncState.WAITING if missing else SyncState.INVALID
    return filled, Blocker(state=state, message=message_of(faults), waits_for=waits_for)


def _oidc(spec: ProductSpec) -> OpenIdConnect | None:
    authentication = spec.deployment.authentication if spec.deployment else None
    return authentication.oidc if authentication else None


def _open(policy: Policy) -> bool:
    return not policy.configuration and policy.configuration_ref is not None


def _key(reference: SecretReference | None, namespace: str, key: str) -> SecretKey | None:
    if reference is None or not reference.name:
        return None
    return SecretKey(namespace=reference.namespace or namespace, name=reference.name, key=key)


def _configuration(path: str, text: str | None, faults: list[Fault]) -> dict[str, Json] | None:
    if text is None:
        faults.append(Fault(path=path, value=CONFIGURATION_KEY, detail="Secret or key not found"))
        return None
    try:
        read = json.loads(text)
    except ValueError:
        read = None
    if not isinstance(read, dict):
        faults.append(Fault(path=path, value=CONFIGURATION_KEY, detail="the configuration is not a JSON object"))
        return None
    return read


def _with_issuer(spec: ProductSpec, issuer: str) -> ProductSpec:
    gateway = "apicastHosted" if spec.deployment and spec.deployment.apicast_hosted else "apicastSelfManaged"
    patch = {"deployment": {gateway: {"authentication": {"oidc": {"issuerEndpoint": issuer}}}}}
    return ProductSpec.model_validate(merge(spec.model_dump(mode="json"), patch))
