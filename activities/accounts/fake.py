"""The Secret of a fake claim, made and removed."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence

from temporalio import activity

from activities.accounts.claim_secrets import delete_secret, put_secret
from activities.accounts.reading import Reader
from domain.accounts.actions.fake import FakeSecret

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
        """Write the dummy keys, or delete the Secret that has them; only where it is the claim's."""
        if action.wanted:
            await put_secret(self._kube, action.claim, action.secret, _encoded())
        else:
            await delete_secret(self._kube, action.claim, action.secret, {DUMMIES["aws_access_key_id"]})


def _encoded() -> dict[str, str]:
    return {name: base64.b64encode(value.encode()).decode() for name, value in DUMMIES.items()}
