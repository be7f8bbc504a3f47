"""What an object remembers of what was last brought to 3scale, as digests in its annotations.

    perdure.dev/3scale-synced     all that was wanted, with the ids and versions of what it rests on
    perdure.dev/3scale-gateway    the part of it that a gateway's configuration shows, as the sandbox has it
    perdure.dev/3scale-production    that part as production has it, where it is promoted by itself

    perdure.dev/3scale-mended     of a backend: when that part was last mended, although nothing new was wanted

As long as what is wanted has the digest that is remembered nothing is called, also after a restart of everything:
whether 3scale still has it is looked at by the sweep. Secrets enter by their versions, never by what they hold.
What bears no mark of ours in 3scale notes which creation it has begun, and forgets that when it is in step: if it is
deleted before, whatever came of the creation is looked for, and nobody else's is touched.
A product whose gateway part is mended although nothing new is wanted forgets that digest before: whoever dies between
the mending and the deployment leaves no object that believes to be deployed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

from domain.model import Model
from domain.resource import ObjectMeta
from domain.schema import Json
from domain.writes import JsonPatch

SYNCED = "perdure.dev/3scale-synced"
GATEWAY = "perdure.dev/3scale-gateway"
PROMOTED = "perdure.dev/3scale-production"
# By what a creation is found whose answer is not known, as JSON.
CREATING = "perdure.dev/3scale-creating"
# Among that: ids of what is found by it and is not the creation's.
OTHERS = "others"
# "true": what is in 3scale stays there when the object is deleted.
RETAIN = "perdure.dev/retain"
# A look at 3scale that is asked for although nothing new is wanted, by any new value; and the one made last.
DRIFT = "perdure.dev/3scale-drift"
LOOKED = "perdure.dev/3scale-looked"

# A backend's part of gateways was mended then: what its products have deployed may show what it was meanwhile.
MENDED = "perdure.dev/3scale-mended"

# Another number has everything looked at again once.
_FORM = 1
_LENGTH = 24


class Memo(Model):
    """The digests; empty where nothing is remembered."""

    synced: str = ""
    gateway: str = ""
    production: str = ""
    mended: str = ""

    @classmethod
    def of(cls, meta: ObjectMeta) -> Memo:
        """As the object remembers them."""
        noted = meta.annotations
        return cls(
            synced=noted.get(SYNCED, ""),
            gateway=noted.get(GATEWAY, ""),
            production=noted.get(PROMOTED, ""),
            mended=noted.get(MENDED, ""),
        )


def remembered(meta: ObjectMeta, memo: Memo) -> JsonPatch:
    """The patch that has the object remember it; empty if it does."""
    before = Memo.of(meta)
    changed: JsonPatch = {}
    if memo.synced != before.synced:
        changed[SYNCED] = memo.synced or None
    if memo.gateway != before.gateway:
        changed[GATEWAY] = memo.gateway or None
    if memo.production != before.production:
        changed[PROMOTED] = memo.production or None
    if memo.mended != before.mended:
        changed[MENDED] = memo.mended or None
    if memo.synced and CREATING in meta.annotations:
        changed[CREATING] = None
    return {"metadata": {"annotations": changed}} if changed else {}


def creating(meta: ObjectMeta, key: Mapping[str, Json], others: Iterable[int] = ()) -> JsonPatch:
    """The patch that has the object note a creation, before it is made; empty if it does."""
    listed = sorted(set(others))
    noted = json.dumps({**key, **({OTHERS: listed} if listed else {})}, sort_keys=True)
    return {} if meta.annotations.get(CREATING) == noted else {"metadata": {"annotations": {CREATING: noted}}}


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
