"""What all passes share: caches, tenants, and access to objects."""

from __future__ import annotations

from typing import Any

from activities.replaced_operator import Leaders
from activities.threescale.cache import ThreescaleCache
from activities.threescale.developer_accounts import AccountSubject, ApplicationSubject, AuthSubject, UserSubject
from activities.threescale.document_download import Downloads
from activities.threescale.documents import DocumentSubject, PolicySubject
from activities.threescale.object_patch import patched
from activities.threescale.open_api import OpenApiSubject
from activities.threescale.products import BackendSubject, ProductSubject, PromotionSubject
from activities.threescale.response_cache import ResponseCache
from activities.threescale.secrets import Secrets
from activities.threescale.subjects import Subject
from activities.threescale.tenant import TenantSubject
from activities.threescale.tenant_addresses import Homes
from activities.threescale.tenant_concurrency import Tenants
from domain.custom_resources import custom_resources
from domain.identity import Key, Kind
from domain.reading import Malformed, read
from domain.resource import CustomResource
from domain.threescale.resources import (
    ActiveDoc,
    Application,
    ApplicationAuth,
    Backend,
    CustomPolicyDefinition,
    DeveloperAccount,
    DeveloperUser,
    OpenApi,
    Product,
    ProxyConfigPromote,
    Tenant,
)
from domain.writes import JsonPatch
from engine.errors import unless_absent
from engine.kube import JsonObject, KubeApi
from engine.kube.json import text
from engine.settings import Settings

LEADER_LEASE = "82355b9c.3scale.net"

_SUBJECTS: dict[type[CustomResource], type[Subject[Any]]] = {
    ActiveDoc: DocumentSubject,
    Application: ApplicationSubject,
    ApplicationAuth: AuthSubject,
    Backend: BackendSubject,
    CustomPolicyDefinition: PolicySubject,
    DeveloperAccount: AccountSubject,
    DeveloperUser: UserSubject,
    OpenApi: OpenApiSubject,
    Product: ProductSubject,
    ProxyConfigPromote: PromotionSubject,
    Tenant: TenantSubject,
}


class PassContext:
    def __init__(
        self, kube: KubeApi, cache: ThreescaleCache, tenants: Tenants, downloads: Downloads, settings: Settings
    ) -> None:
        self.kube = kube
        self.cache = cache
        self.tenants = tenants
        self.settings = settings
        self.responses = ResponseCache()
        self._homes = Homes()
        self._leaders = Leaders(kube)
        self._downloads = downloads
        self._models = {model.kind_of.name: model for model in custom_resources()}

    async def operator_leads(self, namespace: str) -> str:
        """Why Perdure must not act; empty if the 3scale operator is not the leader.

        The operator elects a leader only with `--enable-leader-election`, by a Lease in its own namespace.
        """
        where = self.settings.threescale_operator_namespace or namespace
        return await self._leaders.leads("the 3scale operator", where, LEADER_LEASE)

    def secrets(self) -> Secrets:
        return Secrets(self.kube, self._homes)

    def subject(self, resource: CustomResource, secrets: Secrets) -> Subject[Any]:
        return _SUBJECTS[type(resource)](resource, self.cache, secrets, self._downloads, self.kube)

    async def own(self, kind: Kind, key: Key) -> CustomResource | Malformed | None:
        """The lifecycle's own object from the API server; None if the object is gone or was created again."""
        found = await self.cache.fresh(kind, key.namespace, key.name)
        if found is None or text(found, "metadata", "uid") != key.uid:
            return None
        return read(self._models[kind.name], found)

    async def patch(self, before: CustomResource, patch: JsonPatch, *, status: bool = False) -> JsonObject:
        meta = before.metadata
        place, version = (before.kind_of, meta.namespace, meta.name), meta.resource_version
        if status:
            answer = await self.kube.patch(*place, patch, subresource="status", resource_version=version)
        else:
            answer = await patched(self.kube, *place, patch, version)
        self.cache.learn(before.kind_of, answer)
        return answer

    async def deleted(self, obj: CustomResource) -> JsonObject | None:
        """Returns the object if finalizers delay the deletion; otherwise None."""
        meta = obj.metadata
        left = await unless_absent(self.kube.delete(obj.kind_of, meta.namespace, meta.name, uid=meta.uid))
        if left is not None:
            self.cache.learn(obj.kind_of, left)
        return left
