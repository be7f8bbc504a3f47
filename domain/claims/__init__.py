"""Resource claims, handles, pools and providers of poolboy.gpte.redhat.com (or OPERATOR_DOMAIN), as in Poolboy.

A claim asks for resources, by provider or by template; a handle holds them; a pool keeps free handles. Claims live in
users' namespaces, everything else in the operator's. Each object has one writer, the workflow that reconciles it:

| object | while | workflow |
|---|---|---|
| ResourceClaim | it has no handle | the ClaimBinder, which then starts the claim's own |
| ResourceClaim | it has a handle, is detached, ignored or being deleted | its own |
| ResourceClaim | it expires, according to both claim and handle | the ClaimBinder, in a batch |
| ResourceHandle | a claim holds it | the claim's: both in one pass, the handle first |
| ResourceHandle | it is free, or its claim is gone or ignored | its own |
| ResourcePool, its ResourcePoolScalings, the creation of its handles | always | the pool's |

A handle's workflow also writes its managed resources. Every write requires the resourceVersion of its decision.
"""

from domain.claims.constants import EVENT_COMPONENT, VERSION
from domain.identity import Key, Kind
from domain.operator_domain import PLACEHOLDER

RESOURCE_CLAIM = Kind(
    name="ResourceClaim",
    group=PLACEHOLDER,
    version=VERSION,
    plural="resourceclaims",
    area="claims",
    finalizer=PLACEHOLDER,
    reporter=EVENT_COMPONENT,
)
RESOURCE_HANDLE = Kind(
    name="ResourceHandle",
    group=PLACEHOLDER,
    version=VERSION,
    plural="resourcehandles",
    area="claims",
    finalizer=PLACEHOLDER,
    reporter=EVENT_COMPONENT,
)
RESOURCE_POOL = Kind(
    name="ResourcePool",
    group=PLACEHOLDER,
    version=VERSION,
    plural="resourcepools",
    area="claims",
    finalizer=PLACEHOLDER,
)
# Reconciled by the pool's workflow.
RESOURCE_POOL_SCALING = Kind(
    name="ResourcePoolScaling",
    group=PLACEHOLDER,
    version=VERSION,
    plural="resourcepoolscalings",
    area="claims",
    lifecycle=False,
)
# Not reconciled itself.
RESOURCE_PROVIDER = Kind(
    name="ResourceProvider",
    group=PLACEHOLDER,
    version=VERSION,
    plural="resourceproviders",
    area="claims",
    lifecycle=False,
)
# Written, and never read here.
RESOURCE_WATCH = Kind(
    name="ResourceWatch",
    group=PLACEHOLDER,
    version=VERSION,
    plural="resourcewatches",
    area="claims",
    lifecycle=False,
)
# Not a custom resource: the only workflow that binds handles to claims, so that no handle is bound twice.
CLAIM_BINDER = Kind(name="ClaimBinder", group="", version="", plural="", area="claims")


def binder(domain: str, cluster: str) -> Key:
    return Key(kind=CLAIM_BINDER.name, namespace="", name=domain, uid="0", cluster=cluster)


STANDING = (binder(PLACEHOLDER, cluster=""),)
KINDS = (
    RESOURCE_CLAIM,
    RESOURCE_HANDLE,
    RESOURCE_POOL,
    RESOURCE_POOL_SCALING,
    RESOURCE_PROVIDER,
    RESOURCE_WATCH,
    CLAIM_BINDER,
)
