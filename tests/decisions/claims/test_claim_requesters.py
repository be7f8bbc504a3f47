"""The requester of a claim: what is known of a user while OpenShift does not answer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import pytest

from activities.claims.cache import ClaimCache
from activities.claims.requester import Requesters
from domain.identity import Kind
from engine.errors import Unavailable
from engine.kube import KubeApi

Json = dict[str, Any]
CLAIM: Json = {"metadata": {"name": "mine", "namespace": "user-ada"}}


class OpenShift:
    def __init__(self) -> None:
        self.away = False

    async def find(self, *_: object) -> Json:
        return {"metadata": {"annotations": {"openshift.io/requester": "ada"}}}

    async def get(self, kind: Kind, namespace: str, name: str) -> Json:
        if self.away:
            raise Unavailable("no answer")
        return {"metadata": {"name": name}, "identities": ["sso:ada"]}


async def test_a_known_requester_stays_while_openshift_does_not_answer() -> None:
    openshift = OpenShift()
    requesters = Requesters(cast(KubeApi, openshift), cast(ClaimCache, openshift), timedelta(0))
    known = await requesters.of(cast(Any, CLAIM))
    assert known.user is not None
    openshift.away = True
    assert await requesters.of(cast(Any, CLAIM)) == known
    with pytest.raises(Unavailable):
        await Requesters(cast(KubeApi, openshift), cast(ClaimCache, openshift), timedelta(0)).of(cast(Any, CLAIM))
