from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from domain.identity import Kind
from domain.loadbalancers import LOAD_BALANCER
from domain.loadbalancers.constants import REVISION_ANNOTATION, SERVICE_NAME_ANNOTATION
from domain.loadbalancers.resources.infrastructure import Infrastructure
from domain.loadbalancers.resources.shared import AGE, Replicas, Selector
from domain.resource import Condition, CustomResource, Definition, KubeModel, PrinterColumn
from domain.schema import AtomicObject, DateTime, Marker, Required

PortNumber = Annotated[int, Marker(format="int32")]


class DebugSettings(KubeModel):
    """Access to the machines for people."""

    enabled: bool = Field(False, description="True to run an SSH server on every machine and open its port.")
    sshkey_name: str = Field("", description="The name of the Nova key pair that may log in.")


class Endpoint(KubeModel):
    """A node that receives the Service's traffic."""

    name: Required[str] = Field("", description="The node's name.")
    addresses: tuple[str, ...] = Field((), description="The node's addresses.")


class Port(KubeModel):
    """A port of the Service."""

    name: str = Field("", description="The port's name.")
    protocol: Annotated[str, Marker(default="TCP")] = Field("TCP", description="TCP or UDP.")
    app_protocol: str | None = Field(None, description="The application protocol, such as http; stored but unused.")
    port: Required[PortNumber] = Field(0, description="The port that clients connect to.")
    target_port: int | str | None = Field(None, description="The port of the Service's pods.")
    node_port: PortNumber = Field(0, description="The port on every node.")


class LogForward(KubeModel):
    """The receiver of the machines' logs."""

    enabled: bool = Field(False, description="True to forward the machines' logs.")
    loki_url: str = Field("", description="Loki's address.")
    proxy_url: str = Field("", description="The proxy through which Loki is reached.")
    labels: dict[str, str] | None = Field(None, description="Labels of every log line.")


class LoadBalancerOptions(KubeModel):
    """Optional settings for clients, timeouts, logs and the server group."""

    internal_lb: Annotated[bool, Marker(default=False)] = Field(
        False, alias="internalLB", description="True to use no floating IP: clients use the port's own address."
    )
    load_balancer_source_ranges: tuple[str, ...] = Field((), description="Networks that may connect; all if empty.")
    tcp_proxy_protocol: bool = Field(
        False, description="True to send the client's address to backends by PROXY protocol, version 2."
    )
    tcp_proxy_protocol_port_filter: tuple[PortNumber, ...] = Field(
        (), description="The ports for which the client's address is sent; all TCP ports if empty."
    )
    tcp_idle_timeout: str | None = Field(None, description="How long a TCP connection may be idle, such as 5m30s.")
    udp_idle_timeout: str | None = Field(None, description="How long a UDP session may be idle, such as 5m30s.")
    log_forward: LogForward = Field(LogForward(), description="Whether and where to forward the machines' logs.")
    server_group_policy: str = Field(
        "", description="How machines are spread: affinity, anti-affinity, soft-affinity or soft-anti-affinity."
    )


class LoadBalancerSpec(KubeModel):
    """The desired state."""

    selector: Required[AtomicObject[Selector]] = Field(Selector(), description="Labels of its sets and machines.")
    replicas: Replicas = Field(1, description="The number of machines.")
    existing_floating_ip: str | None = Field(
        None, alias="existingFloatingIP", description="The address of a floating IP that exists already."
    )
    debug_settings: DebugSettings = Field(DebugSettings(), description="Access to the machines for people.")
    endpoints: tuple[Endpoint, ...] = Field((), description="The nodes that receive the traffic.")
    ports: tuple[Port, ...] = Field((), description="The ports of the Service.")
    infrastructure: Required[Infrastructure] = Field(
        Infrastructure(), description="Infrastructure of the machines, and their project."
    )
    options: LoadBalancerOptions = Field(LoadBalancerOptions(), description="Settings of traffic, logs and servers.")


class LoadBalancerStatus(KubeModel):
    """The observed state."""

    ready_replicas: int | None = Field(None, description="The number of ready machines in all sets.")
    replicas: int | None = Field(None, description="The desired number of machines in all sets.")
    external_ip: str | None = Field(None, alias="externalIP", description="The address that clients connect to.")
    floating_id: str | None = Field(None, alias="floatingID", description="The floating IP's id.")
    floating_name: str | None = Field(None, description="The floating IP's description.")
    port_id: str | None = Field(None, alias="portID", description="The port's id.")
    port_name: str | None = Field(None, description="The port's name.")
    port_ip: str | None = Field(None, alias="portIP", description="The port's address.")
    server_group_id: str | None = Field(None, alias="serverGroupID", description="The server group's id.")
    server_group_name: str | None = Field(None, description="The server group's name.")
    group_id: str | None = Field(None, alias="securityGroupID", description="The security group's id.")
    group_name: str | None = Field(None, alias="securityGroupName", description="The security group's name.")
    former_group_id: str | None = Field(None, alias="security_group_id", description="Deprecated: see securityGroupID.")
    former_group_name: str | None = Field(
        None, alias="security_group_name", description="Deprecated: see securityGroupName."
    )
    last_openstack_reconcile: DateTime[str | None] = Field(
        None, description="When the cloud was last found up to date."
    )
    openstack_reconcile_hash: str | None = Field(
        None, description="Hash of what decides over the cloud objects, as it was when the cloud was last complete."
    )
    conditions: tuple[Condition, ...] = Field((), description="What a person has to correct. yawol has no such field.")

    @property
    def records_no_object(self) -> bool:
        others = {"conditions", "replicas", "ready_replicas"}
        return not any(value for name, value in self if name not in others)


class LoadBalancer(CustomResource):
    """An address, the ports it serves, and the machines that serve them."""

    kind_of: ClassVar[Kind] = LOAD_BALANCER
    definition: ClassVar[Definition] = Definition(required=("metadata",), short_names=("lb",), scale_subresource=True)
    printer_columns: ClassVar[tuple[PrinterColumn, ...]] = (
        PrinterColumn(name="DESIRED", type="string", json_path=".spec.replicas"),
        PrinterColumn(name="CURRENT", type="string", json_path=".status.replicas"),
        PrinterColumn(name="READY", type="string", json_path=".status.readyReplicas"),
        PrinterColumn(name="externalIP", type="string", json_path=".status.externalIP"),
        AGE,
    )

    spec: LoadBalancerSpec = LoadBalancerSpec()
    status: LoadBalancerStatus = LoadBalancerStatus()

    @property
    def owner(self) -> str:
        return f"Service/{self.service}" if self.service else ""

    @property
    def outside(self) -> tuple[str, ...]:
        status = self.status
        what = {
            "floating IP": status.floating_id,
            "port": status.port_id,
            "security group": status.group_id,
            "server group": status.server_group_id,
        }
        return tuple(f"{name} {found}" for name, found in what.items() if found)

    @property
    def internal(self) -> bool:
        return self.spec.options.internal_lb

    @property
    def revision(self) -> str:
        return self.metadata.annotations.get(REVISION_ANNOTATION, "")

    @property
    def service(self) -> str:
        return self.metadata.annotations.get(SERVICE_NAME_ANNOTATION, "")
