"""Resource claims, handles, pools and providers of poolboy.gpte.redhat.com (or OPERATOR_DOMAIN), as Poolboy has them.

A claim asks for resources, by provider or by template; a handle holds them; a pool keeps handles ready; a provider says
how resources are made, checked and kept. Claims live with their users, everything else in the operator's namespace.

Whose workflow does the work for an object, and so writes it:

| object | while | workflow |
|---|---|---|
| ResourceClaim | it has no handle | the ClaimBinder, which opens the claim's own behind it |
| ResourceClaim | it has a handle, is detached, ignored or being deleted | its own |
| ResourceClaim | its end has come, as claim and handle say | the ClaimBinder, for all that end together |
| ResourceHandle | a claim holds it | the claim's: both are written in one pass, the handle first |
| ResourceHandle | it is free, or its claim is gone or left alone | its own |
| ResourcePool, its ResourcePoolScalings, the creation of its handles | always | the pool's |

A managed resource is written by the workflow that writes its handle. Every write carries the resourceVersion that it
was decided upon, so that two writers that overlap while an object changes hands refuse each other.
"""

from domain.claims.constants import VERSION
from domain.identity import Key, Kind
from domain.operator_domain import PLACEHOLDER

RESOURCE_CLAIM = Kind(
    name="ResourceClaim",
    group=PLACEHOLDER,
    version=VERSION,
    plural="resourceclaims",
    area="claims",
    finalizer=PLACEHOLDER,
)
RESOURCE_HANDLE = Kind(
    name="ResourceHandle",
    group=PLACEHOLDER,
    version=VERSION,
    plural="resourcehandles",
    area="claims",
    finalizer=PLACEHOLDER,
)
RESOURCE_POOL = Kind(
    name="ResourcePool",
    group=PLACEHOLDER,
    version=VERSION,
    plural="resourcepools",
    area="claims",
    finalizer=PLACEHOLDER,
)
# A wish of its pool's: the pool's workflow does all its work.
RESOURCE_POOL_SCALING = Kind(
    name="ResourcePoolScaling",
    group=PLACEHOLDER,
    version=VERSION,
    plural="resourcepoolscalings",
    area="claims",
    lifecycle=False,
)
# What it says is read by claims, handles and pools; nothing happens to itself.
RESOURCE_PROVIDER = Kind(
    name="ResourceProvider",
    group=PLACEHOLDER,
    version=VERSION,
    plural="resourceproviders",
    area="claims",
    lifecycle=False,
)
# A view of what is watched: written, and not read here.
RESOURCE_WATCH = Kind(
    name="ResourceWatch",
    group=PLACEHOLDER,
    version=VERSION,
    plural="resourcewatches",
    area="claims",
    lifecycle=False,
)
# No custom resource: the one workflow that gives handles to claims, so that no handle is given twice.
CLAIM_BINDER = Kind(name="ClaimBinder", group="", version="", plural="", area="claims")


def binder(domain: str, cluster: str) -> Key:
    """The key of the one ClaimBinder of a domain."""
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
