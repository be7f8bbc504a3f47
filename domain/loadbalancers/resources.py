"""The area's custom resources with all of yawol's fields, including deprecated names.

Reading is tolerant: durations and times stay text. Where yawol distinguishes an absent field from an empty one, an
absent field is None; the template hash depends on this. Aliases with an underscore are yawol's former names of fields,
which are still read. No attribute may be named like such an alias.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from domain.identity import Kind
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET
from domain.loadbalancers.constants import REVISION_ANNOTATION, SERVICE_NAME_ANNOTATION, TEMPLATE_HASH_LABEL
from domain.resource import Condition, CustomResource, Definition, KubeModel, ObjectMeta, PrinterColumn
from domain.schema import Atomic, AtomicObject, DateTime, Marker, Required

Replicas = Annotated[int, Marker(minimum=0, default=1)]

AGE = PrinterColumn(name="AGE", type="date", json_path=".metadata.creationTimestamp")


class Expression(KubeModel):
    """A requirement of a selector. Stored but unused: as in yawol, only labels are compared."""

    key: Required[str] = Field("", description="The label.")
    operator: Required[str] = Field("", description="In, NotIn, Exists or DoesNotExist.")
    values: Atomic[tuple[str, ...]] = Field((), description="Values of the label.")


class Selector(KubeModel):
    """Labels by which sets and machines are found."""

    match_expressions: Atomic[tuple[Expression, ...]] = Field((), description="Stored, but without effect.")
    match_labels: dict[str, str] = Field({}, description="Labels that all sets and machines carry.")


def owner_name(meta: ObjectMeta, kind: Kind) -> str:
    return next((each.name for each in meta.owner_references if each.kind == kind.name), "")


def owner_path(meta: ObjectMeta, kind: Kind) -> str:
    """The owner as `Kind/namespace/name`; empty if there is none."""
    name = owner_name(meta, kind)
    return f"{kind.name}/{meta.namespace}/{name}" if name else ""


def condition_column(name: str) -> PrinterColumn:
    return PrinterColumn(name=name, type="string", json_path=f'.status.conditions[?(@.type=="{name}")].status')


# --- infrastructure ---


class Network(KubeModel):
    """The network of the virtual address and the machines' ports."""

    floating_net_id: str | None = Field(
        None, alias="floatingNetID", description="The external network that floating IPs come from."
    )
    network_id: Required[str] = Field("", alias="networkID", description="The network of all ports.")
    subnet_id: str | None = Field(
        None, alias="subnetID", description="The subnet of all ports. Default: any subnet of the network."
    )


class AdditionalNetwork(KubeModel):
    """A further network that machines are attached to."""

    network_id: Required[str] = Field("", alias="networkID", description="The network's id.")


class Flavor(KubeModel):
    """The machines' flavor, by id, name or a part of the name."""

    id: str | None = Field(None, alias="flavorID", description="The flavor's id.")
    name: str | None = Field(None, alias="flavorName", description="The flavor's name.")
    search: str | None = Field(None, alias="flavorSearch", description="A part of the flavor's name.")
    former_id: str | None = Field(None, alias="flavor_id", description="Deprecated: use flavorID.")
    former_name: str | None = Field(None, alias="flavor_name", description="Deprecated: use flavorName.")
    former_search: str | None = Field(None, alias="flavor_search", description="Deprecated: use flavorSearch.")


class Image(KubeModel):
    """The machines' image, by id, name or a part of the name."""

    id: str | None = Field(None, alias="imageID", description="The image's id.")
    name: str | None = Field(None, alias="imageName", description="The image's name.")
    search: str | None = Field(None, alias="imageSearch", description="A part of the image's name.")
    former_id: str | None = Field(None, alias="image_id", description="Deprecated: use imageID.")
    former_name: str | None = Field(None, alias="image_name", description="Deprecated: use imageName.")
    former_search: str | None = Field(None, alias="image_search", description="Deprecated: use imageSearch.")


class CredentialsReference(KubeModel):
    """The Secret with the project's credentials, under the key `cloudprovider.conf`."""

    name: str = Field("", description="The Secret's name.")
    namespace: str = Field("", description="The Secret's namespace.")


class Infrastructure(KubeModel):
    """Infrastructure of the machines, and their project."""

    floating_net_id: str | None = Field(
        None, alias="floatingNetID", description="Deprecated: use defaultNetwork.floatingNetID."
    )
    network_id: str = Field("", alias="networkID", description="Deprecated: use defaultNetwork.networkID.")
    default_network: Network = Field(Network(), description="The network of the virtual address and machines' ports.")
    additional_networks: tuple[AdditionalNetwork, ...] | None = Field(
        None, description="Further networks that machines are attached to."
    )
    flavor: Required[Flavor] = Field(Flavor(), description="The machines' size.")
    image: Required[Image] = Field(Image(), description="The machines' image.")
    availability_zone: str = Field("", description="The machines' availability zone; the cloud's default if empty.")
    auth_secret_ref: Required[AtomicObject[CredentialsReference]] = Field(
        CredentialsReference(), description="The Secret with the project's credentials."
    )
    project_id: str | None = Field(
        None, alias="projectID", description="The OpenStack project. Default: the credentials' own project."
    )

    @property
    def network(self) -> str:
        return self.default_network.network_id or self.network_id

    @property
    def floating_net(self) -> str:
        present = self.default_network.floating_net_id
        return (present if present is not None else self.floating_net_id) or ""

    @property
    def subnet(self) -> str:
        return self.default_network.subnet_id or ""


# --- LoadBalancer ---

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
        None, description="When openstackReconcileHash was last written."
    )
    openstack_reconcile_hash: str | None = Field(
        None, description="Hash of the settings with which all cloud objects were last found up to date."
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


# --- LoadBalancerMachine ---

# Its agent reads the lists of conditions and metrics and replaces each list as a whole, so entries of other writers may
# be lost or reappear.


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
        None,
        description="When its cloud objects were found up to date. Renewed only if the status changes anyway.",
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
        status = self.status
        what = {
            "server": status.server_id,
            "port": status.default_port_id or status.port_id,
            "ServiceAccount with its token": status.service_account_name,
            "Role and RoleBinding": status.role_name,
        }
        return tuple(f"{name} {found}" for name, found in what.items() if found)

    @property
    def revision(self) -> str:
        return self.metadata.annotations.get(REVISION_ANNOTATION, "")


# --- LoadBalancerSet ---

HAS_MASTER = "HasKeepalivedMaster"

# The rules of metav1.Condition.
_TYPE = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
_REASON = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
ConditionType = Annotated[str, Marker(max_length=316, pattern=_TYPE)]
ConditionStatus = Annotated[str, Marker(enum=("True", "False", "Unknown"))]
ConditionReason = Annotated[str, Marker(min_length=1, max_length=1024, pattern=_REASON)]
ConditionMessage = Annotated[str, Marker(max_length=32768)]
ObservedGeneration = Annotated[int, Marker(format="int64", minimum=0)]


class MachineTemplate(KubeModel):
    """Template of the set's machines."""

    labels: Required[dict[str, str]] = Field({}, description="Labels of every machine.")
    spec: Required[MachineSpec] = Field(MachineSpec(), description="Spec of every machine.")


class SetSpec(KubeModel):
    """The number of machines, and their template."""

    selector: Required[AtomicObject[Selector]] = Field(Selector(), description="Labels of its machines.")
    template: Required[MachineTemplate] = Field(MachineTemplate(), description="Template of the set's machines.")
    replicas: Replicas = Field(1, description="The number of machines.")


class SetCondition(KubeModel):
    """Whether one of the set's machines holds the virtual address."""

    type: Required[ConditionType] = Field("", description="The condition's type.")
    status: Required[ConditionStatus] = Field("", description="True, False or Unknown.")
    observed_generation: ObservedGeneration | None = Field(None, description="The generation that was observed.")
    last_transition_time: Required[DateTime[str]] = Field("", description="When the status last changed.")
    reason: Required[ConditionReason] = Field("", description="Why, in one word, for programs.")
    message: Required[ConditionMessage] = Field("", description="Why, in a sentence, for people.")


class SetStatus(KubeModel):
    """The set's state."""

    available_replicas: int | None = Field(None, description="Unused: neither yawol nor Perdure sets it.")
    ready_replicas: int | None = Field(None, description="The number of ready machines.")
    replicas: int | None = Field(None, description="The desired number of machines, as last observed.")
    conditions: tuple[SetCondition, ...] = Field((), description="Whether a machine holds the virtual address.")


class LoadBalancerSet(CustomResource):
    """A number of machines made from one template."""

    kind_of: ClassVar[Kind] = LOAD_BALANCER_SET
    definition: ClassVar[Definition] = Definition(short_names=("lbs",), scale_subresource=True)
    printer_columns: ClassVar[tuple[PrinterColumn, ...]] = (
        PrinterColumn(name="DESIRED", type="string", json_path=".spec.replicas"),
        PrinterColumn(name="CURRENT", type="string", json_path=".status.replicas"),
        PrinterColumn(name="READY", type="string", json_path=".status.readyReplicas"),
        condition_column(HAS_MASTER),
        AGE,
    )

    spec: SetSpec = SetSpec()
    status: SetStatus = SetStatus()

    @property
    def owner(self) -> str:
        return owner_path(self.metadata, LOAD_BALANCER)

    @property
    def template_hash(self) -> str:
        return self.metadata.labels.get(TEMPLATE_HASH_LABEL, "")

    @property
    def revision(self) -> str:
        return self.metadata.annotations.get(REVISION_ANNOTATION, "")
