"""The models and definitions of the load balancers' area, held against what clients of yawol see of its definitions.

The tables here are written from the replaced system's public schemas, not from the models. In a sketch `!` marks
required fields, `=` a default, `@` an object that is replaced as a whole, and brackets what else the schema asks.
"""

from __future__ import annotations

from typing import Any

import pytest
from definitions import CRDS, MODELS, Json, columns_of, samples, schema_of, sketch, version_of
from openapi_schema_validator import OAS30Validator

from domain.custom_resources import custom_resources
from domain.loadbalancers import CUSTOM_KINDS
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine, LoadBalancerSet
from domain.reading import Malformed, read
from starters.cli.wake_lifecycles import kinds_with_objects
from workers.registry import areas

FORMER = "{what}ID: string, {what}Name: string, {what}Search: string, {what}_id: string, {what}_name: string, "
FORMER += "{what}_search: string"
NETWORK = "{floatingNetID: string, networkID!: string, subnetID: string}"
INFRASTRUCTURE = (
    f"{{additionalNetworks: list<{{networkID!: string}}>, authSecretRef!: {{name: string, namespace: string}}@, "
    f"availabilityZone: string, defaultNetwork: {NETWORK}, flavor!: {{{FORMER.format(what='flavor')}}}, "
    f"floatingNetID: string, image!: {{{FORMER.format(what='image')}}}, networkID: string, projectID: string}}"
)
SELECTOR = (
    "{matchExpressions: atomic<{key!: string, operator!: string, values: atomic<string>}>, matchLabels: map<string>}@"
)
MACHINE_SPEC = (
    f"{{infrastructure!: {INFRASTRUCTURE}, loadBalancerRef!: {{name!: string, namespace!: string}}, "
    "portID!: string, serverGroupID: string}"
)
SPECS = {
    "LoadBalancer": (
        "{debugSettings: {enabled: boolean, sshkeyName: string}, "
        "endpoints: list<{addresses: list<string>, name!: string}>, existingFloatingIP: string, "
        f"infrastructure!: {INFRASTRUCTURE}, "
        "options: {internalLB: boolean=False, loadBalancerSourceRanges: list<string>, "
        "logForward: {enabled: boolean, labels: map<string>, lokiUrl: string, proxyUrl: string}, "
        "serverGroupPolicy: string, tcpIdleTimeout: string, tcpProxyProtocol: boolean, "
        "tcpProxyProtocolPortFilter: list<int32>, udpIdleTimeout: string}, "
        "ports: list<{appProtocol: string, name: string, nodePort: int32, port!: int32, protocol: string=TCP, "
        f"targetPort: int-or-string}}>, replicas: integer[>=0]=1, selector!: {SELECTOR}}}"
    ),
    "LoadBalancerSet": (
        f"{{replicas: integer[>=0]=1, selector!: {SELECTOR}, "
        f"template!: {{labels!: map<string>, spec!: {MACHINE_SPEC}}}}}"
    ),
    "LoadBalancerMachine": MACHINE_SPEC,
}
STATUSES = {
    "LoadBalancer": (
        "{conditions: list<{lastProbeTime: date-time, lastTransitionTime: date-time, message: string, reason: string, "
        "status: string, type: string}>, "  # Perdure's addition
        "externalIP: string, floatingID: string, floatingName: string, lastOpenstackReconcile: date-time, "
        "openstackReconcileHash: string, portID: string, portIP: string, portName: string, readyReplicas: integer, "
        "replicas: integer, securityGroupID: string, securityGroupName: string, security_group_id: string, "
        "security_group_name: string, serverGroupID: string, serverGroupName: string}"
    ),
    "LoadBalancerSet": (
        "{availableReplicas: integer, conditions: list<{lastTransitionTime!: date-time, "
        "message!: string[<=32768], observedGeneration: int64[>=0], "
        "reason!: string[^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$][1<=][<=1024], status!: string[True|False|Unknown], "
        "type!: string[^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
        "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$][<=316]}>, readyReplicas: integer, replicas: integer}"
    ),
    "LoadBalancerMachine": (
        "{conditions: list<{lastHeartbeatTime: date-time, lastTransitionTime: date-time, message: string, "
        "reason: string, status!: string, type!: string}>, creationTimestamp: date-time, defaultPortID: string, "
        "defaultPortIP: string, defaultPortName: string, lastOpenstackReconcile: date-time, "
        "metrics: list<{timestamp!: date-time, type!: string, value!: string}>, portID: string, "
        "roleBindingName: string, roleName: string, serverID: string, serviceAccountName: string, "
        "serviceAccountSecretName: string}"
    ),
}
COUNTS = "DESIRED string .spec.replicas; CURRENT string .status.replicas; READY string .status.readyReplicas; "
AGE = "AGE date .metadata.creationTimestamp"
COLUMNS = {
    "LoadBalancer": f"{COUNTS}externalIP string .status.externalIP; {AGE}",
    "LoadBalancerSet": (
        f'{COUNTS}HasKeepalivedMaster string .status.conditions[?(@.type=="HasKeepalivedMaster")].status; {AGE}'
    ),
    "LoadBalancerMachine": (
        'EnvoyUpToDate string .status.conditions[?(@.type=="EnvoyUpToDate")].status; '
        'KeepalivedMaster string .status.conditions[?(@.type=="KeepalivedMaster")].status; '
        'Load1 string .status.metrics[?(@.type=="load1")].value; '
        f"creationTimestamp string .status.creationTimestamp; {AGE}"
    ),
}
SHORT = {"LoadBalancer": "lb", "LoadBalancerSet": "lbs", "LoadBalancerMachine": "lbm"}
SCALED = {"LoadBalancer", "LoadBalancerSet"}
KINDS_BY_NAME = sorted(SPECS)
OBJECTS = samples("loadbalancers")


@pytest.mark.parametrize("kind", KINDS_BY_NAME)
def test_the_spec_of_a_load_balancer_kind_has_the_fields_clients_know(kind: str) -> None:
    assert sketch(schema_of(kind)["properties"]["spec"]) == SPECS[kind]


@pytest.mark.parametrize("kind", KINDS_BY_NAME)
def test_the_status_of_a_load_balancer_kind_has_the_fields_clients_know(kind: str) -> None:
    assert sketch(schema_of(kind)["properties"]["status"]) == STATUSES[kind]


@pytest.mark.parametrize("kind", KINDS_BY_NAME)
def test_kubectl_get_shows_the_known_columns_of_load_balancer_kinds(kind: str) -> None:
    assert columns_of(kind) == COLUMNS[kind]


@pytest.mark.parametrize("kind", KINDS_BY_NAME)
def test_a_load_balancer_kind_is_served_under_its_known_names_only(kind: str) -> None:
    crd, version = CRDS[kind], version_of(kind)
    plural = f"{kind.lower()}s"
    assert crd["metadata"]["name"] == f"{plural}.yawol.stackit.cloud"
    assert crd["spec"]["names"] == {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": plural,
        "shortNames": [SHORT[kind]],
        "singular": kind.lower(),
    }
    assert (crd["spec"]["group"], crd["spec"]["scope"]) == ("yawol.stackit.cloud", "Namespaced")
    assert (version["name"], version["served"], version["storage"]) == ("v1beta1", True, True)


@pytest.mark.parametrize("kind", KINDS_BY_NAME)
def test_load_balancers_and_sets_can_be_scaled(kind: str) -> None:
    scale = {"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}
    assert version_of(kind)["subresources"] == {"status": {}, **(scale if kind in SCALED else {})}


def test_no_kind_of_another_area_can_be_scaled_or_has_a_short_name_of_these() -> None:
    for name, crd in CRDS.items():
        if name not in SPECS:
            assert set(crd["spec"]["names"].get("shortNames", ())).isdisjoint(SHORT.values())
            assert "scale" not in version_of(name).get("subresources", {})


@pytest.mark.parametrize("kind", KINDS_BY_NAME)
def test_only_a_load_balancer_must_have_metadata(kind: str) -> None:
    assert schema_of(kind).get("required") == (["metadata"] if kind == "LoadBalancer" else None)


def test_every_kind_of_the_load_balancers_area_has_a_definition() -> None:
    ours = [model.kind_of for model in custom_resources() if model.kind_of.area == "loadbalancers"]
    assert ours == list(CUSTOM_KINDS)
    assert {kind.name for kind in CUSTOM_KINDS} == set(SPECS)


def test_the_finalizers_are_the_existing_ones_of_the_objects() -> None:
    assert {kind.name: kind.finalizer for kind in CUSTOM_KINDS} == {
        "LoadBalancer": "yawol.stackit.cloud/controller2",
        "LoadBalancerSet": "stackit.cloud/loadbalancermachine",
        "LoadBalancerMachine": "yawol.stackit.cloud/controller4",
    }


def test_every_load_balancer_kind_has_lifecycles_that_only_an_executed_area_wakes() -> None:
    assert set(CUSTOM_KINDS) <= set(kinds_with_objects())
    # Until the area has workflows, `wake --all` leaves it out.
    assert all(kind.area not in areas() for kind in CUSTOM_KINDS) or "loadbalancers" in areas()


def test_an_absent_field_and_an_empty_one_differ_where_the_hash_differs() -> None:
    absent = LoadBalancer.model_validate({"spec": {"infrastructure": {}}})
    empty = LoadBalancer.model_validate(
        {"spec": {"infrastructure": {"additionalNetworks": []}, "options": {"logForward": {"labels": {}}}}}
    )
    null = LoadBalancer.model_validate({"spec": {"infrastructure": {"additionalNetworks": None}}})
    assert absent.spec.infrastructure.additional_networks is None
    assert null.spec.infrastructure.additional_networks is None
    assert empty.spec.infrastructure.additional_networks == ()
    assert (absent.spec.options.log_forward.labels, empty.spec.options.log_forward.labels) == (None, {})


def test_target_ports_keep_their_type() -> None:
    ports = [{"port": 80, "targetPort": "web"}, {"port": 81, "targetPort": 8080}, {"port": 82, "targetPort": "8080"}]
    read = LoadBalancer.model_validate({"spec": {"ports": ports}})
    assert [port.target_port for port in read.spec.ports] == ["web", 8080, "8080"]


def test_former_names_are_read_and_written_as_they_were() -> None:
    infrastructure = {"flavor": {"flavor_id": "f"}, "image": {"image_search": "i"}, "networkID": "n"}
    read = LoadBalancer.model_validate({"spec": {"infrastructure": infrastructure}})
    assert read.spec.infrastructure.flavor.former_id == "f"
    assert read.spec.infrastructure.network == "n"
    assert read.model_dump(exclude_unset=True)["spec"]["infrastructure"] == infrastructure
    former = {"security_group_id": "g", "security_group_name": "n"}
    assert LoadBalancer.model_validate({"status": former}).model_dump(exclude_unset=True)["status"] == former


def test_objects_that_abandon_would_leave_behind_are_named() -> None:
    status = {"floatingID": "f", "portID": "p", "securityGroupID": "s", "serverGroupID": "g"}
    balancer = LoadBalancer.model_validate({"status": status})
    assert balancer.outside == ("floating IP f", "port p", "security group s", "server group g")
    rights = {"serviceAccountName": "ns/m", "serviceAccountSecretName": "ns/m", "roleName": "ns/m"}
    machine = LoadBalancerMachine.model_validate({"status": {"serverID": "v", "portID": "old", **rights}})
    rest = ("ServiceAccount with its token ns/m", "Role and RoleBinding ns/m")
    assert machine.outside == ("server v", "port old", *rest)
    assert LoadBalancerSet().outside == ()


# --- objects as they are stored ---


def complaints(kind: str, obj: Json) -> list[str]:
    """Where an object breaks its schema."""
    validator = OAS30Validator(schema_of(kind))
    return [f"{'.'.join(map(str, error.path))}: {error.message}" for error in validator.iter_errors(obj)]


def pruned(schema: Json, value: Any) -> Any:
    """The value without the fields that its schema does not know."""
    if isinstance(value, list):
        return [pruned(schema["items"], item) for item in value]
    if not isinstance(value, dict) or "additionalProperties" in schema:
        return value
    known = schema.get("properties", {})
    return {name: pruned(known[name], item) for name, item in value.items() if name in known}


@pytest.mark.parametrize("name", sorted(OBJECTS))
def test_objects_of_yawol_fit_the_schema_and_lose_nothing(name: str) -> None:
    obj = OBJECTS[name]
    schema = schema_of(obj["kind"])
    assert complaints(obj["kind"], obj) == []
    for part in ("spec", "status"):
        assert pruned(schema["properties"][part], obj[part]) == obj[part]


@pytest.mark.parametrize("name", sorted(OBJECTS))
def test_objects_of_yawol_are_read_and_written_unchanged(name: str) -> None:
    obj = OBJECTS[name]
    found = read(MODELS[obj["kind"]], obj)
    assert not isinstance(found, Malformed)
    again = found.model_dump(mode="json", exclude_unset=True)
    assert (again["spec"], again["status"]) == (obj["spec"], obj["status"])


BARE: Json = {"authSecretRef": {}, "flavor": {}, "image": {}}
LEAST: Json = {"selector": {}, "infrastructure": BARE}
MACHINE: Json = {"infrastructure": BARE, "portID": "p", "loadBalancerRef": {"name": "n", "namespace": "s"}}


@pytest.mark.parametrize(
    ("kind", "spec", "complaint"),
    [
        ("LoadBalancer", LEAST, ""),
        ("LoadBalancerMachine", MACHINE, ""),
        ("LoadBalancerSet", {"selector": {}, "template": {"labels": {}, "spec": MACHINE}}, ""),
        ("LoadBalancer", {"selector": {}}, "'infrastructure' is a required property"),
        ("LoadBalancer", {"infrastructure": BARE}, "'selector' is a required property"),
        ("LoadBalancer", {**LEAST, "replicas": -1}, "-1 is less than the minimum of 0"),
        ("LoadBalancer", {**LEAST, "endpoints": [{"addresses": []}]}, "'name' is a required property"),
        ("LoadBalancer", {**LEAST, "ports": [{"name": "a"}]}, "'port' is a required property"),
        ("LoadBalancer", {**LEAST, "ports": [{"port": 1, "targetPort": []}]}, "is not valid under any of"),
        ("LoadBalancer", {**LEAST, "options": {"tcpIdleTimeout": 5}}, "5 is not of type 'string'"),
        ("LoadBalancerSet", {"selector": {}, "template": {"spec": MACHINE}}, "'labels' is a required property"),
        ("LoadBalancerMachine", {**MACHINE, "loadBalancerRef": {"name": "a"}}, "'namespace' is a required property"),
    ],
)
def test_the_schema_refuses_what_it_always_refused(kind: str, spec: Json, complaint: str) -> None:
    found = complaints(kind, {"metadata": {"name": "n"}, "spec": spec})
    assert bool(found) is bool(complaint)
    assert complaint in "".join(found)
