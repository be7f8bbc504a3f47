"""The annotation that turns off TLS verification for an object's calls to 3scale."""

from __future__ import annotations

from domain.resource import CustomResource

INSECURE = "insecure_skip_verify"


def insecure(resource: CustomResource) -> bool:
    return resource.metadata.annotations.get(INSECURE) == "true"
