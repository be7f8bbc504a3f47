"""Resource claims, handles, pools and providers of poolboy.gpte.redhat.com (or OPERATOR_DOMAIN), as Poolboy has them.

A claim asks for resources, by provider or by template; a handle holds them; a pool keeps handles ready; a provider says
how resources are made, checked and kept. Claims live with their users, everything else in the operator's namespace.
"""

from domain.claims.constants import FINALIZER, GROUP, VERSION
from domain.identity import Kind

RESOURCE_CLAIM = Kind(
    name="ResourceClaim", group=GROUP, version=VERSION, plural="resourceclaims", area="claims", finalizer=FINALIZER
)
RESOURCE_HANDLE = Kind(
    name="ResourceHandle", group=GROUP, version=VERSION, plural="resourcehandles", area="claims", finalizer=FINALIZER
)
RESOURCE_POOL = Kind(
    name="ResourcePool", group=GROUP, version=VERSION, plural="resourcepools", area="claims", finalizer=FINALIZER
)
# A wish of its pool's: the pool's workflow does all its work.
RESOURCE_POOL_SCALING = Kind(
    name="ResourcePoolScaling",
    group=GROUP,
    version=VERSION,
    plural="resourcepoolscalings",
    area="claims",
    lifecycle=False,
)
# What it says is read by claims, handles and pools; nothing happens to itself.
RESOURCE_PROVIDER = Kind(
    name="ResourceProvider", group=GROUP, version=VERSION, plural="resourceproviders", area="claims", lifecycle=False
)
# A view of what is watched: written, and read by nobody here.
RESOURCE_WATCH = Kind(
    name="ResourceWatch", group=GROUP, version=VERSION, plural="resourcewatches", area="claims", lifecycle=False
)

KINDS = (
    RESOURCE_CLAIM,
    RESOURCE_HANDLE,
    RESOURCE_POOL,
    RESOURCE_POOL_SCALING,
    RESOURCE_PROVIDER,
    RESOURCE_WATCH,
)
