"""Names that contain OPERATOR_DOMAIN: API version, finalizers, labels and annotations of the claims area.

A process makes them from its settings, so that no code uses the default domain by accident.
"""

from __future__ import annotations

import re
from typing import ClassVar

from domain.claims.constants import VERSION
from domain.identity import Kind
from domain.model import Model


class _Key:
    """A label, an annotation or a finalizer under the domain."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, names: DomainNames, _: object) -> str:
        return f"{names.domain}/{self._name}"


class DomainNames(Model):
    domain: str

    # Labels.
    ignore_label: ClassVar[_Key] = _Key("ignore")
    pool_scaling_name_label: ClassVar[_Key] = _Key("resource-pool-scaling-name")

    # Labels of handles, and annotations of managed resources whose handle has a claim or a pool. The pool's name is an
    # annotation of claims as well.
    claim_name_key: ClassVar[_Key] = _Key("resource-claim-name")
    claim_namespace_key: ClassVar[_Key] = _Key("resource-claim-namespace")
    pool_name_key: ClassVar[_Key] = _Key("resource-pool-name")
    pool_namespace_key: ClassVar[_Key] = _Key("resource-pool-namespace")

    # An annotation of claims, present once defaults have been applied.
    init_timestamp_annotation: ClassVar[_Key] = _Key("resource-claim-init-timestamp")

    # Annotations of managed resources.
    resource_provider_name_annotation: ClassVar[_Key] = _Key("resource-provider-name")
    resource_provider_namespace_annotation: ClassVar[_Key] = _Key("resource-provider-namespace")
    resource_handle_name_annotation: ClassVar[_Key] = _Key("resource-handle-name")
    resource_handle_namespace_annotation: ClassVar[_Key] = _Key("resource-handle-namespace")
    resource_handle_uid_annotation: ClassVar[_Key] = _Key("resource-handle-uid")
    resource_index_annotation: ClassVar[_Key] = _Key("resource-index")
    requester_user_annotation: ClassVar[_Key] = _Key("resource-requester-user")
    requester_email_annotation: ClassVar[_Key] = _Key("resource-requester-email")
    requester_name_annotation: ClassVar[_Key] = _Key("resource-requester-name")
    requester_preferred_username_annotation: ClassVar[_Key] = _Key("resource-requester-preferred-username")

    # A finalizer of Poolboy 1.14 to 1.17 in multi-pod mode, which Perdure never adds. A handle loses it in its first
    # pass, any other object on its deletion.
    former_finalizer: ClassVar[_Key] = _Key("handler")

    def of(self, kind: Kind) -> Kind:
        return kind.under(self.domain)

    @property
    def api_version(self) -> str:
        return f"{self.domain}/{VERSION}"

    @property
    def finalizer(self) -> str:
        return self.domain

    @property
    def our_finalizers(self) -> tuple[str, ...]:
        return (self.finalizer, self.former_finalizer)

    @property
    def own_annotations_path(self) -> str:
        """A pattern for JSON pointers to our annotations on managed resources. Changes of these
        annotations are allowed unless an update filter of the provider forbids them.
        """
        # A managed resource may be a ResourceClaim: its own lifecycle writes its init timestamp.
        return rf"/metadata/annotations/{re.escape(self.domain)}~1resource-(?!claim-init-timestamp$).*"
