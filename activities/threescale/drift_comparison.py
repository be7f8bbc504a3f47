"""Compares a Product or Backend and all its parts with 3scale, without writing."""

from __future__ import annotations

from activities.threescale.errors import of_known_shape
from activities.threescale.pass_context import PassContext
from activities.threescale.tenant_concurrency import Calls
from domain.resource import CustomResource
from domain.threescale.calls import Read, Resource, Write
from domain.threescale.drift import Lists, listed
from domain.threescale.observed import Phase
from domain.threescale.provider_account import ProviderAccount
from domain.threescale.tls_verification import insecure
from engine.clock import now


class Comparison:
    """`lists` contains the entries that the sweep has read already; they are not read again."""

    def __init__(self, context: PassContext, lists: Lists) -> None:
        self._context = context
        self._lists = lists
        self._metrics: dict[str, object] = {}  # answers with metrics of backends, by path; Products need them, too

    async def differs(self, resource: CustomResource) -> bool:
        """Whether a pass over the object would write to 3scale. False for an object that is known to be out of sync:
        it is not compared, because its pass is due anyway.
        """
        secrets = self._context.secrets()
        world = await self._context.subject(resource, secrets).observed()
        decision, provider = world.decide(now()), world.provider
        if decision.actions or decision.phase != Phase.SYNCED or not isinstance(provider, ProviderAccount):
            return False
        token = await secrets.text(provider.token) or ""
        calls = self._context.tenants.calls(provider.url, token, insecure=insecure(resource))
        world = world.beside({"look": True})
        async with calls.slot():
            while reads := [each for each in world.decide(now()).actions if isinstance(each, Read)]:
                for each in reads:
                    body = await self._answer(calls, each)
                    with of_known_shape(each.named(provider.url)):
                        world = each.learn(world, body)
        return any(isinstance(each, Write) for each in world.decide(now()).actions)

    async def _answer(self, calls: Calls, read: Read) -> object:
        own = listed(self._lists, read)
        if own is not None:
            return own
        if read.resource is not Resource.METRIC or not read.path.startswith("backend_apis/"):
            return await calls.read(read, fresh=True)
        if read.path not in self._metrics:
            self._metrics[read.path] = await calls.read(read, fresh=True)
        return self._metrics[read.path]
