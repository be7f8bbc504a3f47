"""LoadBalancerMachine: one virtual machine that serves a LoadBalancer's ports.

Its agent reads the lists of conditions and metrics and replaces each list as a whole, so entries of other writers may
be lost or reappear.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from domain.identity import Kind
from domain.loadbalancers import LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET
from domain.loadbalancers.constants import REVISION_ANNOTATION
from domain.loadbalancers.resources.infrastructure import Infrastructure
from domain.loadbalancers.resources.shared import AGE, condition_column, owner_path
from domain.resource import CustomResource, Definition, KubeModel, PrinterColumn
from domain.schema import DateTime, Required


class LoadBalancerReference(KubeModel):
    """The LoadBalancer that the machine serves."""

    name: Required[str] = Field("", description="The LoadBalancer's name.")
    namespace: Required[str] = Field("", description="The LoadBalancer's namespace.")


class MachineSpec(KubeModel):
    """The parts that the machine is made from."""

    infrastructure: Required[Infrastructure] = Field(
        Infrastructure(), description="Infrastructure of the machine, and its project."
    )
    port_id: Required[str] = Field(
        "", alias="portID", description="The LoadBalancer's port, which has the virtual address."
    )
    server_group_id: str = Field("", alias="serverGroupID", description="The server group of the machine's server.")
    load_balancer_ref: Required[LoadBalancerReference] = Field(
        LoadBalancerReference(), description="The LoadBalancer that the machine serves."
    )


class MachineCondition(KubeModel):
    """What the machine's agent found, or why the machine is marked for deletion."""

    type: Required[str] = Field("", description="The condition's type.")
    status: Required[str] = Field("", description="True, False or Unknown.")
    last_heartbeat_time: DateTime[str | None] = Field(None, description="When the condition was last checked.")
    last_transition_time: DateTime[str | None] = Field(None, description="When the status last changed.")
    reason: str | None = Field(None, description="Why, in one word, for programs.")
    message: str | None = Field(None, description="Why, in a sentence, for people.")


class Metric(KubeModel):
    """A measurement that the machine's agent reports."""

    type: Required[str] = Field("", description="What was measured.")
    value: Required[str] = Field("", description="The number, as text.")
    timestamp: Required[DateTime[str]] = Field("", description="When it was measured.")


class MachineStatus(KubeModel):
    """The observed state, and what the machine's agent reports."""

    conditions: tuple[MachineCondition, ...] = Field((), description="What the machine's agent found.")
    metrics: tuple[Metric, ...] = Field((), description="What the machine's agent measured.")
    creation_timestamp: DateTime[str | None] = Field(None, description="When the server was created.")
    last_openstack_reconcile: DateTime[str | None] = Field(
        None, description="When the cloud was last found up to date."
    )
    server_id: str | None = Field(None, alias="serverID", description="The server's id.")
    port_id: str | None = Field(None, alias="portID", description="Deprecated: see defaultPortID.")
    default_port_id: str | None = Field(None, alias="defaultPortID", description="The id of the machine's own port.")
    default_port_name: str | None = Field(None, description="The name of the machine's own port.")
    default_port_ip: str | None = Field(None, alias="defaultPortIP", description="The machine's own address.")
    service_account_name: str | None = Field(None, description="namespace/name of its ServiceAccount.")
    service_account_secret_name: str | None = Field(None, description="namespace/name of its token's Secret.")
    role_name: str | None = Field(None, description="namespace/name of its Role.")
    role_binding_name: str | None = Field(None, description="namespace/name of its RoleBinding.")


class LoadBalancerMachine(CustomResource):
    """One virtual machine that serves a LoadBalancer's ports."""

    kind_of: ClassVar[Kind] = LOAD_BALANCER_MACHINE
    definition: ClassVar[Definition] = Definition(short_names=("lbm",))
    printer_columns: ClassVar[tuple[PrinterColumn, ...]] = (
        condition_column("EnvoyUpToDate"),
        condition_column("KeepalivedMaster"),
        PrinterColumn(name="Load1", type="string", json_path='.status.metrics[?(@.type=="load1")].value'),
        PrinterColumn(name="creationTimestamp", type="string", json_path=".status.creationTimestamp"),
        AGE,
    )

    spec: MachineSpec = MachineSpec()
    status: MachineStatus = MachineStatus()

    @property
    def owner(self) -> str:
        return owner_path(self.metadata, LOAD_BALANCER_SET)

    @property
    def outside(self) -> tuple[str, ...]:
        what = {"server": self.status.server_id, "port": self.status.default_port_id or self.status.port_id}
        return tuple(f"{name} {found}" for name, found in what.items() if found)

    @property
    def revision(self) -> str:
        return self.metadata.annotations.get(REVISION_ANNOTATION, "")
