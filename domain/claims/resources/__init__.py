"""The area's custom resources, with the fields of all Poolboy releases from 1.12 to 1.17.3, so that none is pruned.

Reading is tolerant: free-form parts (templates, variables, parameter values, schemas, states) are plain JSON, times and
durations stay strings, unknown fields remain, and only a wrong type makes an object unreadable. Absent fields are None
where absence has a meaning, otherwise the operator's default; the schemas have no defaults.
"""

from domain.claims.resources.claim import ResourceClaim
from domain.claims.resources.handle import ResourceHandle
from domain.claims.resources.pool import ResourcePool, ResourcePoolScaling
from domain.claims.resources.provider import ResourceProvider
from domain.claims.resources.watch import ResourceWatch

__all__ = [
    "ResourceClaim",
    "ResourceHandle",
    "ResourcePool",
    "ResourcePoolScaling",
    "ResourceProvider",
    "ResourceWatch",
]
