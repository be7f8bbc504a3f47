"""Every name that contains OPERATOR_DOMAIN: the API version, finalizers, labels and annotations of the claims area.

A process makes this value from its settings and hands it to whatever writes or reads such a name; evaluators get it
with each question. Nothing here is constant, so nothing can fall back to the default domain.
"""

from __future__ import annotations

import re

from domain.claims.constants import VERSION
from domain.identity import Kind
from domain.model import Model


class DomainNames(Model):
    """The names under one domain."""

    domain: str

    def of(self, kind: Kind) -> Kind:
        """The kind in this domain."""
        return kind.under(self.domain)

    def _key(self, name: str) -> str:
        return f"{self.domain}/{name}"

    @property
    def api_version(self) -> str:
        """The `apiVersion` of the area's objects."""
        return f"{self.domain}/{VERSION}"

    # Finalizers.

    @property
    def finalizer(self) -> str:
        """The bare domain, without a path part; on handles made for claims it is there from birth, and alone."""
        return self.domain

    @property
    def former_finalizers(self) -> tuple[str, ...]:
        """What Poolboy 1.14 to 1.17 left in its multi-pod mode: cleared on deletion, never written."""
        return (self._key("handler"),)

    @property
    def our_finalizers(self) -> tuple[str, ...]:
        """All that mean us."""
        return (self.finalizer, *self.former_finalizers)

    # Labels.

    @property
    def ignore_label(self) -> str:
        """Its presence counts, whatever the value: the object is left alone completely."""
        return self._key("ignore")

    @property
    def claim_name_label(self) -> str:
        """Of a handle: its claim."""
        return self._key("resource-claim-name")

    @property
    def claim_namespace_label(self) -> str:
        """Of a handle: where its claim is."""
        return self._key("resource-claim-namespace")

    @property
    def pool_name_label(self) -> str:
        """Of a handle: its pool."""
        return self._key("resource-pool-name")

    @property
    def pool_namespace_label(self) -> str:
        """Of a handle: where its pool is."""
        return self._key("resource-pool-namespace")

    @property
    def pool_scaling_name_label(self) -> str:
        """Of a handle: the ResourcePoolScaling that it was made for."""
        return self._key("resource-pool-scaling-name")

    # Annotations of claims.

    @property
    def init_timestamp_annotation(self) -> str:
        """Its presence means that defaults are applied."""
        return self._key("resource-claim-init-timestamp")

    @property
    def pool_name_annotation(self) -> str:
        """Set by users: bind to handles of that pool only."""
        return self._key("resource-pool-name")

    # Annotations of managed resources. The claim's and the pool's are there while the handle has one.

    @property
    def resource_provider_name_annotation(self) -> str:
        """The resource's provider."""
        return self._key("resource-provider-name")

    @property
    def resource_provider_namespace_annotation(self) -> str:
        """Where its provider is."""
        return self._key("resource-provider-namespace")

    @property
    def resource_handle_name_annotation(self) -> str:
        """The handle that manages the resource."""
        return self._key("resource-handle-name")

    @property
    def resource_handle_namespace_annotation(self) -> str:
        """Where its handle is."""
        return self._key("resource-handle-namespace")

    @property
    def resource_handle_uid_annotation(self) -> str:
        """The uid of its handle."""
        return self._key("resource-handle-uid")

    @property
    def resource_index_annotation(self) -> str:
        """Its place among the handle's resources."""
        return self._key("resource-index")

    @property
    def resource_claim_name_annotation(self) -> str:
        """The claim that holds its handle."""
        return self._key("resource-claim-name")

    @property
    def resource_claim_namespace_annotation(self) -> str:
        """Where that claim is."""
        return self._key("resource-claim-namespace")

    @property
    def resource_pool_name_annotation(self) -> str:
        """The pool of its handle."""
        return self._key("resource-pool-name")

    @property
    def resource_pool_namespace_annotation(self) -> str:
        """Where that pool is."""
        return self._key("resource-pool-namespace")

    @property
    def requester_user_annotation(self) -> str:
        """Who asked for the claim's namespace."""
        return self._key("resource-requester-user")

    @property
    def requester_email_annotation(self) -> str:
        """The requester's address."""
        return self._key("resource-requester-email")

    @property
    def requester_name_annotation(self) -> str:
        """The requester's full name."""
        return self._key("resource-requester-name")

    @property
    def requester_preferred_username_annotation(self) -> str:
        """What the requester is called at sign-in."""
        return self._key("resource-requester-preferred-username")

    @property
    def own_annotations_path(self) -> str:
        """The one update filter of every provider: these are kept current whatever the provider allows."""
        return rf"/metadata/annotations/{re.escape(self.domain)}~1resource-.*"
