"""Compare a product or backend with all that 3scale has below it, without writing anything.

The decision of the object's own pass says what to read, and in the end what it would write: an object differs if that
is anything. What other lists have shown in the same sweep is not read again.
"""

from __future__ import annotations

from activities.threescale.errors import Call, of_known_shape
from activities.threescale.ground import Ground
from activities.threescale.known import View
from activities.threescale.secrets import insecure
from activities.threescale.tenants import Calls
from domain.identity import Key
from domain.resource import CustomResource
from domain.threescale.calls import Read, Resource
from domain.threescale.drift import Lists, listed
from domain.threescale.providers import ProviderAccount
from domain.threescale.work import Phase
from engine.clock import now


class Comparison:
    """One sweep of one tenant; `lists` has the objects' own fields."""

    def __init__(self, ground: Ground, sweeper: Key, lists: Lists) -> None:
        self._ground = ground
        self._sweeper = sweeper
        self._lists = lists
        self._metrics: dict[str, object] = {}  # of backends, by path: their products ask for them as well

    async def differs(self, resource: CustomResource) -> bool:
        """Whether its pass would write to 3scale; False for an object that is not in step, which has a pass to come.

        Raises:
            ApiError: something could not be read.
        """
        subject = self._ground.subject(resource, View(self._ground.known, self._sweeper))
        await subject.gather()
        work, account = subject.work({}, now(), look=False), subject.provider
        if not work.idle or work.phase is not Phase.SYNCED or not isinstance(account, ProviderAccount):
            return False
        token = await subject.secrets.text(account.token) or ""
        calls = self._ground.tenants.calls(account.url, token, insecure=insecure(resource))
        async with calls.seat():
            while (work := subject.work({}, now(), look=True)).reads:
                for each in work.reads:
                    answer = await self._answer(calls, each)
                    with of_known_shape(Call(method="GET", path=each.path, tenant=account.url)):
                        subject.read(each, answer)
        return bool(work.writes)

    async def _answer(self, calls: Calls, read: Read) -> object:
        own = listed(self._lists, read)
        if own is not None:
            return own
        if read.resource is not Resource.METRIC or not read.path.startswith("backend_apis/"):
            return await calls.read(read, fresh=True)
        if read.path not in self._metrics:
            self._metrics[read.path] = await calls.read(read, fresh=True)
        return self._metrics[read.path]
