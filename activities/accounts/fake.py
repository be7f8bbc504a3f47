"""The Secret of a fake claim, made and removed."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence

from temporalio import activity

from activities.accounts.reading import Reader
from domain.accounts.actions.fake import FakeSecret
from engine.errors import Absent, Conflict
from engine.kube import SECRET
from engine.kube.json import mapping, text

# Literal values of the replaced operator.
DUMMIES = {"aws_access_key_id": "fakeAccessKey", "aws_secret_access_key": "FakeSecretAccesskey"}


class FakeActivities:
    """What fake claims get."""

    def __init__(self, reader: Reader) -> None:
        self._kube = reader.kube

    def all(self) -> Sequence[Callable[..., object]]:
        """Every activity, for the worker."""
        return (self.fake_secret,)

    @activity.defn(name=FakeSecret.activity)
    async def fake_secret(self, action: FakeSecret) -> None:
        """Create the Secret if there is none; delete it if it is one of ours."""
        namespace, dummies = action.claim.namespace, _encoded()
        if action.wanted:
            secret = {"metadata": {"name": action.secret}, "type": "Opaque", "data": dummies}
            try:
                await self._kube.create(SECRET, secret, namespace)
            except Conflict:
                return
            return
        try:
            present = await self._kube.get(SECRET, namespace, action.secret)
            if dict(mapping(present, "data")) == dummies:
                await self._kube.delete(SECRET, namespace, action.secret, uid=text(present, "metadata", "uid"))
        except Absent:
            return


def _encoded() -> dict[str, str]:
    return {name: base64.b64encode(value.encode()).decode() for name, value in DUMMIES.items()}
