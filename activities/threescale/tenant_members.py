"""Functions that find each tenant's custom resources and read from its 3scale, for the sweep and the audit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress

from activities.threescale.secrets import Secrets
from activities.threescale.tenant_addresses import Place
from activities.threescale.tenant_concurrency import Tenants
from domain.model import Model
from domain.resource import CustomResource
from domain.threescale.calls import Read, SecretKey
from domain.threescale.provider_account import NoAccount, ProviderAccount, plain, tenant_secret
from domain.threescale.resources import DeveloperAccount
from domain.threescale.tls_verification import insecure
from engine.errors import ApiError, Denied


class Members(Model):
    """A tenant's objects and provider accounts. `insecure`: at least one object turns off TLS verification."""

    accounts: tuple[ProviderAccount, ...]
    insecure: bool
    objects: tuple[CustomResource, ...]


async def members_of_tenants(
    objects: Iterable[CustomResource], secrets: Secrets
) -> tuple[list[Members], dict[Place, NoAccount | ApiError]]:
    """The objects by tenant; and for each place (namespace, Secret) without a tenant, why it has none."""
    listed = tuple(objects)
    owners = {
        (each.metadata.namespace, each.metadata.name): each for each in listed if isinstance(each, DeveloperAccount)
    }
    by_tenant: defaultdict[tuple[str, str, str], list[CustomResource]] = defaultdict(list)
    known: defaultdict[tuple[str, str, str], dict[SecretKey, ProviderAccount]] = defaultdict(dict)
    found: dict[Place, ProviderAccount | NoAccount | ApiError] = {}
    for each in listed:
        where = (each.metadata.namespace, tenant_secret(each, owners))
        if where not in found:
            try:
                found[where] = await secrets.account(*where)
            except ApiError as error:
                found[where] = error
        account = found[where]
        if isinstance(account, ProviderAccount):
            place = plain(account.url)
            known[place].setdefault(account.token, account)
            by_tenant[place].append(each)
    tenants = [
        Members(accounts=tuple(known[place].values()), insecure=any(map(insecure, members)), objects=tuple(members))
        for place, members in by_tenant.items()
    ]
    return tenants, {where: each for where, each in found.items() if not isinstance(each, ProviderAccount)}


async def permitted_answer(tenants: Tenants, members: Members, read: Read, secrets: Secrets) -> object:
    """Try the tenant's tokens until 3scale permits the read."""
    *others, last = members.accounts
    for account in others:
        with suppress(Denied):
            return await _answer(tenants, members, account, read, secrets)
    return await _answer(tenants, members, last, read, secrets)


async def _answer(tenants: Tenants, members: Members, account: ProviderAccount, read: Read, secrets: Secrets) -> object:
    token = await secrets.text(account.token) or ""
    return await tenants.calls(account.url, token, insecure=members.insecure).read(read, fresh=True)
