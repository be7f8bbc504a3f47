"""The workflow ids of instances and Auto Scaling groups, by account and region.

In a lifecycle's key (`domain.identity.Key`), account and region are the namespace. The key has no uid, because EC2
never reuses ids. The key names no custom resource: events may precede the AWSMachine, which may move to another
management cluster. With the account in the key, a forged event reaches only instances of accounts that use the queue.
"""

from __future__ import annotations

from typing import ClassVar, Self

from domain.identity import Key
from domain.instances.constants import GROUP_WORKFLOW, INSTANCE_WORKFLOW
from domain.model import Model


class _RegionalKey(Model):
    account: str
    region: str

    workflow: ClassVar[str]
    named: ClassVar[str]
    """The name of the field that holds AWS's name: the instance's id or the group's name."""

    @property
    def workflow_id(self) -> str:
        return self.lifecycle.workflow_id

    @property
    def lifecycle(self) -> Key:
        return self.lifecycle_in("")

    def lifecycle_in(self, cluster: str) -> Key:
        """The lifecycle's key with the cluster whose workers run it: needed to start the lifecycle."""
        place, name = f"{self.account}/{self.region}", getattr(self, self.named)
        return Key(kind=self.workflow, namespace=place, name=name, uid="", cluster=cluster)

    @classmethod
    def of(cls, lifecycle: Key) -> Self:
        account, _, region = lifecycle.namespace.partition("/")
        return cls.model_validate({"account": account, "region": region, cls.named: lifecycle.name})

    def __str__(self) -> str:
        return self.workflow_id


class InstanceKey(_RegionalKey):
    instance_id: str

    workflow: ClassVar[str] = INSTANCE_WORKFLOW
    named: ClassVar[str] = "instance_id"


class GroupKey(_RegionalKey):
    group: str

    workflow: ClassVar[str] = GROUP_WORKFLOW
    named: ClassVar[str] = "group"
