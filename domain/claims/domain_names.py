"""Names that contain OPERATOR_DOMAIN: API version, finalizers, labels and annotations of the claims area.

A process makes them from its settings, so that no code uses the default domain by accident.
"""

from __future__ import annotations

import re

from domain.claims.constants import VERSION
from domain.identity import Kind
from domain.model import Model


class DomainNames(Model):
    domain: str

    def of(self, kind: Kind) -> Kind:
        return kind.under(self.domain)

    def _key(self, name: str) -> str:
        return f"{self.domain}/{name}"

    @property
    def api_version(self) -> str:
        return f"{self.domain}/{VERSION}"

    # Finalizers.

    @property
    def finalizer(self) -> str:
        return self.domain

    @property
    def former_finalizers(self) -> tuple[str, ...]:
        """Finalizers of Poolboy 1.14 to 1.17 in multi-pod mode, which Perdure never adds.

        A handle loses them in its first pass, any other object on its deletion.
        """
        return (self._key("handler"),)

    @property
    def our_finalizers(self) -> tuple[str, ...]:
        return (self.finalizer, *self.former_finalizers)

    # Labels.

    @property
    def ignore_label(self) -> str:
        return self._key("ignore")

    @property
    def claim_name_label(self) -> str:
        return self._key("resource-claim-name")

    @property
    def claim_namespace_label(self) -> str:
        return self._key("resource-claim-namespace")

    @property
    def pool_name_label(self) -> str:
        return self._key("resource-pool-name")

    @property
    def pool_namespace_label(self) -> str:
        return self._key("resource-pool-namespace")

    @property
    def pool_scaling_name_label(self) -> str:
        return self._key("resource-pool-scaling-name")

    # Annotations of claims.

    @property
    def init_timestamp_annotation(self) -> str:
        """The annotation that is present once defaults have been applied."""
        return self._key("resource-claim-init-timestamp")

    @property
    def pool_name_annotation(self) -> str:
        return self._key("resource-pool-name")

    # Annotations of managed resources; those about claim and pool exist only if the handle has one.

    @property
    def resource_provider_name_annotation(self) -> str:
        return self._key("resource-provider-name")

    @property
    def resource_provider_namespace_annotation(self) -> str:
        return self._key("resource-provider-namespace")

    @property
    def resource_handle_name_annotation(self) -> str:
        return self._key("resource-handle-name")

    @property
    def resource_handle_namespace_annotation(self) -> str:
        return self._key("resource-handle-namespace")

    @property
    def resource_handle_uid_annotation(self) -> str:
        return self._key("resource-handle-uid")

    @property
    def resource_index_annotation(self) -> str:
        return self._key("resource-index")

    @property
    def resource_claim_name_annotation(self) -> str:
        return self._key("resource-claim-name")

    @property
    def resource_claim_namespace_annotation(self) -> str:
        return self._key("resource-claim-namespace")

    @property
    def resource_pool_name_annotation(self) -> str:
        return self._key("resource-pool-name")

    @property
    def resource_pool_namespace_annotation(self) -> str:
        return self._key("resource-pool-namespace")

    @property
    def requester_user_annotation(self) -> str:
        return self._key("resource-requester-user")

    @property
    def requester_email_annotation(self) -> str:
        return self._key("resource-requester-email")

    @property
    def requester_name_annotation(self) -> str:
        return self._key("resource-requester-name")

    @property
    def requester_preferred_username_annotation(self) -> str:
        return self._key("resource-requester-preferred-username")

    @property
    def own_annotations_path(self) -> str:
        """A pattern for JSON pointers to our annotations on managed resources: an update filter of every provider."""
        return rf"/metadata/annotations/{re.escape(self.domain)}~1resource-.*"
