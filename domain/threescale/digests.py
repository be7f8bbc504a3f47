"""What an object remembers of what was last brought to 3scale, as digests in its status (`status.digests`).

    synced        all that was wanted, with the ids and versions of what it rests on
    gateway       the part of it that a gateway's configuration shows, as the sandbox has it
    production    that part as production has it, where it is promoted automatically
    mended        of a backend: when that part was last corrected although nothing new was wanted

No call is made while what is wanted has the remembered digest, also after a restart; the sweep finds drift. Secrets
enter by their versions. The digests stand in the status so that one write reports a pass: a client that replaces what
it has just read meets no second one. The replaced operator's definitions drop the field; an annotation then has it.
What carries no mark of ours in 3scale notes the creation that it begins, until it is in step: if the object is deleted
before, the result of that creation is looked for, and nothing else is touched. A product whose gateway part is
corrected although nothing new is wanted forgets its digests first, so that a crash before the deployment is noticed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

from pydantic import ValidationError

from domain.model import Model
from domain.resource import CustomResource, ObjectMeta
from domain.schema import Json
from domain.threescale.resources.shared import Digests, SyncedStatus
from domain.writes import JsonPatch, merge

# The digests as JSON, where the object's definition has no `status.digests`.
DIGESTS = "perdure.dev/3scale-digests"
# By what a creation is found whose answer is not known, as JSON.
CREATING = "perdure.dev/3scale-creating"
# Among that: ids of what is found by it and is not the creation's.
OTHERS = "others"
# "true": what is in 3scale stays there when the object is deleted.
RETAIN = "perdure.dev/retain"
# A look at 3scale that is asked for although nothing new is wanted, by any new value; and the one made last.
DRIFT = "perdure.dev/3scale-drift"
LOOKED = "perdure.dev/3scale-looked"

# Another number has everything looked at again once.
_FORM = 1
_LENGTH = 24


def digests_of(resource: CustomResource) -> Digests:
    """As the object remembers them; none of an object that has none, or whose annotation cannot be read."""
    found = _in_status(resource)
    if found is not None:
        return found
    try:
        return Digests.model_validate_json(resource.metadata.annotations.get(DIGESTS, "{}"))
    except ValidationError:
        return Digests()


def remembering(resource: CustomResource, digests: Digests) -> dict[str, object]:
    """The field of the status that has the object remember them; empty if it does."""
    return {} if digests_of(resource) == digests else {"digests": digests}


def annotated(resource: CustomResource, asked: JsonPatch) -> JsonPatch:
    """The patch that notes in the annotation the digests that a patch of the status asked for and the status lacks."""
    if "digests" not in asked or _in_status(resource) is not None:
        return {}
    digests = merge({}, asked["digests"])
    noted = json.dumps(digests, sort_keys=True) if digests else None
    return {"metadata": {"annotations": {DIGESTS: noted}}}


def _in_status(resource: CustomResource) -> Digests | None:
    status: object = getattr(resource, "status", None)
    return status.digests if isinstance(status, SyncedStatus) else None


def creating(meta: ObjectMeta, key: Mapping[str, Json], others: Iterable[int] = ()) -> JsonPatch:
    """The patch that has the object note a creation, before it is made; empty if it does."""
    listed = sorted(set(others))
    noted = json.dumps({**key, **({OTHERS: listed} if listed else {})}, sort_keys=True)
    return {} if meta.annotations.get(CREATING) == noted else {"metadata": {"annotations": {CREATING: noted}}}


def begun_no_more(meta: ObjectMeta) -> JsonPatch:
    """The patch by which the object forgets a creation that it knows the outcome of; empty if it has noted none."""
    return {"metadata": {"annotations": {CREATING: None}}} if CREATING in meta.annotations else {}


def created(meta: ObjectMeta) -> dict[str, Json]:
    """By what is found that it may have made; empty if it has begun no creation, or knows what came of it."""
    try:
        noted = json.loads(meta.annotations.get(CREATING, "{}"))
    except ValueError:
        return {}
    return noted if isinstance(noted, dict) else {}


def retained(meta: ObjectMeta) -> bool:
    """Whether what is in 3scale outlives the object."""
    return meta.annotations.get(RETAIN) == "true"


def digest(*parts: object) -> str:
    """Of what is wanted: models as they are written, in an order that does not depend on theirs."""
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
