"""Digests of the last synced state, in the object's status (`status.digests`).

    synced        the whole desired state, with ids and versions of its inputs
    gateway       the part that the gateway's configuration in staging contains
    production    the same part in production, if promotion is automatic
    mended        of a backend: time of the last correction of drift, which the other digests may not show

While the desired state has the stored digest, no call is made, even after a restart; the sweep finds drift. The digests
are in the status, so that a pass ends with one write. The replaced operator's CRDs drop `status.digests`; an annotation
then stores the digests. A product's digests are cleared before drift in its gateway part is corrected, so that the
next pass deploys if the process crashes before the deployment.
"""

from __future__ import annotations

import hashlib
import json

from pydantic import ValidationError

from domain.model import Model
from domain.resource import CustomResource
from domain.threescale.resources.shared import Digests, SyncedStatus
from domain.writes import JsonPatch, merge

# Stores the digests as JSON if the CRD drops `status.digests`.
DIGESTS = "perdure.dev/3scale-digests"

# The version of the digests' form. With a new number every object is compared with 3scale once.
_FORM = 1
_LENGTH = 24


def digests_of(resource: CustomResource) -> Digests:
    found = _in_status(resource)
    if found is not None:
        return found
    try:
        return Digests.model_validate_json(resource.metadata.annotations.get(DIGESTS, "{}"))
    except ValidationError:
        return Digests()


def remembering(resource: CustomResource, digests: Digests) -> dict[str, object]:
    return {} if digests_of(resource) == digests else {"digests": digests}


def annotated(resource: CustomResource, patch: JsonPatch) -> JsonPatch:
    """The patch that stores digests in an annotation; empty if the status stores them."""
    if "digests" not in patch or _in_status(resource) is not None:
        return {}
    digests = merge({}, patch["digests"])
    noted = json.dumps(digests, sort_keys=True) if digests else None
    return {"metadata": {"annotations": {DIGESTS: noted}}}


def _in_status(resource: CustomResource) -> Digests | None:
    status: object = getattr(resource, "status", None)
    return status.digests if isinstance(status, SyncedStatus) else None


def digest(*parts: object) -> str:
    text = json.dumps([_FORM, *(_plain(each) for each in parts)], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]


def _plain(part: object) -> object:
    if isinstance(part, Model):
        return part.model_dump(mode="json")
    if isinstance(part, dict):
        return {str(name): _plain(value) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return [_plain(each) for each in part]
    return part
