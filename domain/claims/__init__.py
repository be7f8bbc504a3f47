"""The kinds of poolboy.gpte.redhat.com (or OPERATOR_DOMAIN), as in Poolboy: claims, handles, pools and providers.

Each object has one writer at a time, the workflow that reconciles it:

| object | while | workflow |
|---|---|---|
| ResourceClaim | it has no handle | the ClaimBinder, which then starts the claim's own |
| ResourceClaim | it has a handle, is detached, ignored or being deleted | the claim's own |
| ResourceClaim | it expires, according to both claim and handle | the ClaimBinder, in a batch |
| ResourceHandle | it is bound to a claim | the claim's: both in one pass, the handle first |
| ResourceHandle | it is free, or its claim is gone or ignored | the handle's own |
| ResourcePool, its ResourcePoolScalings, the creation of its handles | always | the pool's |

A handle's writer also writes its managed resources. Every write requires the resourceVersion that the decision saw.
"""

from domain.claims.constants import EVENT_COMPONENT, VERSION
from domain.identity import Key, Kind
from domain.operator_domain import PLACEHOLDER


def _kind(name: str, *, plural: str = "", finalizer: str = "", lifecycle: bool = True, reporter: str = "") -> Kind:
    return Kind(
        name=name,
        group=PLACEHOLDER,
        version=VERSION,
        plural=plural or f"{name.lower()}s",
        area="claims",
        finalizer=finalizer,
        lifecycle=lifecycle,
        reporter=reporter,
    )


RESOURCE_CLAIM = _kind("ResourceClaim", finalizer=PLACEHOLDER, reporter=EVENT_COMPONENT)
RESOURCE_HANDLE = _kind("ResourceHandle", finalizer=PLACEHOLDER, reporter=EVENT_COMPONENT)
RESOURCE_POOL = _kind("ResourcePool", finalizer=PLACEHOLDER)
# The workflow of its pool reconciles it.
RESOURCE_POOL_SCALING = _kind("ResourcePoolScaling", lifecycle=False)
# No workflow reconciles it: claims, handles and pools read it.
RESOURCE_PROVIDER = _kind("ResourceProvider", lifecycle=False)
# The watcher writes it; no pass reads it.
RESOURCE_WATCH = _kind("ResourceWatch", plural="resourcewatches", lifecycle=False)
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
