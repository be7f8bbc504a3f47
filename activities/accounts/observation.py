from __future__ import annotations

import asyncio

from temporalio import activity

from activities.accounts.cache import Reader
from activities.accounts.claim_secrets import KEY_FIELDS
from activities.accounts.metrics import claim_seen
from activities.activity_class import Activities
from domain.accounts.claim_holder import holds, lost_link, unclean, unlinked
from domain.accounts.constants import INPUT_SECRET_FINALIZER, OPERATOR_NAMESPACE
from domain.accounts.federated.resources import AWSFederatedAccountAccess
from domain.accounts.free_account_choice import Rejections
from domain.accounts.observed import AccountWorld, ClaimWorld, InputSecret
from domain.accounts.passes import ObserveAccount, ObserveClaim
from domain.accounts.pool import offered
from domain.accounts.resources import Account, AccountClaim, AccountPool, ClaimState
from domain.resource import ObjectMeta
from engine.errors import Absent, Denied, unless_absent
from engine.kube import NAMESPACE, SECRET, JsonObject
from engine.kube.json import mapping, sequence, text


class ObserveActivities(Activities):
    def __init__(self, reader: Reader) -> None:
        self._read = reader

    @activity.defn(name=ObserveAccount.activity)
    async def observe_account(self, look: ObserveAccount) -> AccountWorld:
        key = look.key
        account, config = await asyncio.gather(self._read.same(Account, key), self._read.config(look.seen))
        if account is None:
            return AccountWorld(key=key, exists=False)
        settings = self._read.settings
        claim = await self._holder(account)
        return AccountWorld(
            key=key,
            hold=await self._read.hold(account.metadata),
            account=account,
            config=config,
            claim=claim,
            input_secret=await self._input_secret(claim) if claim and account.customers else None,
            protected=settings.accounts_protected,
            email_domain=settings.accounts_email_domain,
            dev_mode=bool(settings.accounts_dev_mode),
        )

    async def _holder(self, account: Account) -> AccountClaim | None:
        """The claim in the Account's link; without a link, a claim that may still have the Account's key."""
        spec = account.spec
        if spec.claim_link:
            claim = await self._read.one(AccountClaim, spec.claim_link_namespace, spec.claim_link)
            return claim if claim is not None and holds(claim, account) else None
        ends, lost = account.metadata.deleting, unlinked(account)
        held = unclean(account) or (lost and (ends or not account.customers))
        if not held or account.metadata.namespace != OPERATOR_NAMESPACE:
            return None
        claims = await self._read.all(AccountClaim)
        return next((claim for claim in claims if holds(claim, account) or lost_link(claim, account)), None)

    @activity.defn(name=ObserveClaim.activity)
    async def observe_claim(self, look: ObserveClaim) -> ClaimWorld:
        """Read the claim, then its Account. A binding writes the Account's link first, so if the claim has a link, the
        Account has one too.
        """
        key = look.key
        claim, config = await asyncio.gather(self._read.same(AccountClaim, key), self._read.config(look.seen))
        if claim is None:
            return ClaimWorld(key=key, exists=False)
        claim_seen(claim)
        settings = self._read.settings
        world = ClaimWorld(
            key=key,
            hold=await self._read.hold(claim.metadata),
            claim=claim,
            config=config,
            rotate_keys=settings.accounts_rotate_keys,
            dev_mode=bool(settings.accounts_dev_mode),
            protected=settings.accounts_protected,
        )
        if claim.spec.byoc and not claim.metadata.deleting:
            world = await self._with_secrets(world)
        if claim.spec.account_link:
            account = await self._read.account(claim.spec.account_link)
            if claim.metadata.deleting and (account is None or not holds(claim, account)):
                account = await self._bound_to(claim) or account  # the tenant may have edited the link
            ends = claim.metadata.deleting and account is not None and _entered_by_its_claim(account)
            accesses = await self._accesses(claim, account) if ends and account is not None else ()
            return world.model_copy(update={"account": account, "accesses": accesses})
        if claim.metadata.deleting:
            return world.model_copy(update={"account": await self._bound_to(claim)})
        if claim.from_pool and claim.status.state == ClaimState.READY:  # the claim's link was blanked
            world = world.model_copy(update={"account": await self._bound_to(claim)})
        return await self._with_pool(world, look) if claim.from_pool else world

    async def _accesses(self, claim: AccountClaim, account: Account) -> tuple[str, ...]:
        """Federated accesses to the account: those being deleted, or all if the claim's namespace is being deleted."""
        namespace = claim.metadata.namespace
        try:
            found = await self._read.all(AWSFederatedAccountAccess, namespace)
        except (Absent, Denied):  # the kind is not installed, or the installation does not use it
            return ()
        into = [each for each in found if each.place.account_id == account.spec.aws_account_id]
        if not all(each.metadata.deleting for each in into) and not await self._ends(namespace):
            into = [each for each in into if each.metadata.deleting]
        return tuple(sorted(each.metadata.name for each in into))

    async def _ends(self, namespace: str) -> bool:
        try:
            return bool(text(await self._read.kube.get(NAMESPACE, "", namespace), "metadata", "deletionTimestamp"))
        except Absent:
            return True
        except Denied:
            # An older installation lacks this right: then a release waits only for accesses that are being deleted.
            return False

    async def _with_secrets(self, world: ClaimWorld) -> ClaimWorld:
        claim = world.claim
        own = claim.spec.aws_credential_secret.name
        secret = await self._secret(claim.metadata.namespace, own)
        return world.model_copy(
            update={"input_secret": await self._input_secret(claim), "delivered": secret is not None}
        )

    async def _input_secret(self, claim: AccountClaim) -> InputSecret | None:
        if claim.spec.manual_sts_mode:
            return None
        found = await self._secret(claim.metadata.namespace, claim.spec.byoc_secret_ref.name)
        if found is None:
            return None
        data = mapping(found, "data")
        held = INPUT_SECRET_FINALIZER in sequence(found, "metadata", "finalizers")
        return InputSecret(complete=all(data.get(field) for field in KEY_FIELDS), held=held)

    async def _secret(self, namespace: str, name: str) -> JsonObject | None:
        if not name:
            return None
        return await unless_absent(self._read.kube.get(SECRET, namespace, name))

    async def _bound_to(self, claim: AccountClaim) -> Account | None:
        return next(iter(await self._read.accounts_held_by(claim.key)), None)

    async def _with_pool(self, world: ClaimWorld, look: ObserveClaim) -> ClaimWorld:
        name = world.claim.spec.account_pool or world.config.default_pool
        if name and not await self._read.has_pool(name, look.seen):
            return world.model_copy(update={"pool_exists": False})
        if not (name and look.dry_run):
            return world
        accounts = await self._read.all(Account, OPERATOR_NAMESPACE)
        pool = AccountPool(metadata=ObjectMeta(name=name))
        given = [account for account in accounts if offered(account, pool, world.config, world.protected)]
        return world.model_copy(update={"unserved": Rejections(given).of(world.claim)})


def _entered_by_its_claim(account: Account) -> bool:
    """Whether the payer enters the customer's account through a support role, which the claim's release deletes."""
    return account.spec.byoc and not account.spec.manual_sts_mode and not account.metadata.deleting
