"""Every step of `domain.loadbalancers.cloud.steps`, implemented so that it can be repeated at any time.

The first attempt relies on the plan's observation. A later attempt first looks for the object: a floating IP by its
port, a server group by name and policy, others by name and mark. A port has only one server and one floating IP. So if
two attempts to create a port's server or floating IP overlap, the slower gets a conflict and adopts the other's object.

Nova answers a server's creation with the id only; other creations are complete when answered. A server's deletion can
take minutes and may fail (ERROR), so retries check until the server is gone. Deleting a port that is attached to a
server is refused with 403 or 409, depending on the release.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from activities import attempt
from activities.openstack import observation, responses
from activities.openstack.images_and_flavors import flavor_id, image_id
from activities.openstack.observation import SERVER_GROUPS
from activities.openstack.session import Api, Project
from domain.loadbalancers.cloud import steps
from domain.loadbalancers.cloud.folded_results import Brought, RuleChange
from domain.loadbalancers.cloud.objects import CloudPort, FloatingIp, SecurityGroup, SecurityGroupRule, Server
from domain.loadbalancers.cloud.ownership import Owner, marked_for, select
from domain.loadbalancers.cloud.security_group_rules import meaning
from domain.loadbalancers.ip_addresses import bare_addresses
from domain.loadbalancers.refused_calls import QUOTA
from engine.errors import Absent, ApiError, Conflict, Denied, Invalid, Pending, Throttled
from engine.kube.json import JsonObject, text

STILL_HELD = "StillHeld"
NOT_DELETED = "NotDeleted"
NO_EFFECT = "NoEffect"
_RULE_EXISTS = "SecurityGroupRuleExists"

# Checks become rarer the longer a deletion takes.
_GOING_SECONDS = (3, 3, 4, 6, 10, 15, 20, 30)
# Seven checks for a boot of a minute. The machine's agent reports by itself, so a late check delays nothing.
_BOOTING_SECONDS = (2, 3, 6, 11, 18, 20)
_PATIENT_ATTEMPTS = 5

M = TypeVar("M", SecurityGroup, CloudPort)
Effect = Callable[[Project, Any], Brought]


def carry_out(project: Project, step: steps.Step, user_data: Callable[[], str] | None = None) -> Brought:
    """`user_data` renders a server's user data just before it is sent.

    Raises:
        Absent, Conflict: the plan is outdated; observe again.
        Throttled: a quota (code OverQuota), or too many calls.
        Invalid, Denied: a person has to act.
        Unavailable, Pending: the next attempt finds out what has happened.
    """
    if isinstance(step, steps.CreateServer):
        assert user_data is not None  # noqa: S101 - every caller that makes servers passes it
        return _create_server(project, step, user_data)
    return EFFECTS[type(step)](project, step)


def await_server(project: Project, server_id: str) -> Server | None:
    """The server; None if it is gone. Raises Pending while it is being built."""
    server = observation.get_server(project, server_id)
    if server is not None and server.status.upper() == "BUILD":
        raise Pending(
            f"server {server.name or server_id} is being built", code="BUILD", delay=attempt.growing(_BOOTING_SECONDS)
        )
    return server


def _made_before(found: Iterable[M], description: str) -> M | None:
    return select(found, Owner(uid=marked_for(description)), lambda each: marked_for(each.description)).selected


def _check_effect(shown: bool, step: steps.Step) -> None:
    # Without this error, the plan would want the same step again at once, endlessly.
    if not shown:
        raise Conflict(f"{step.summary}: OpenStack accepts this, but it has no effect", code=NO_EFFECT)


# --- security groups ---


def _create_security_group(project: Project, step: steps.CreateSecurityGroup) -> Brought:
    if attempt.repeated():
        named = observation.list_security_groups(project, ("name", step.name))
        if made := _made_before(named, step.description):
            return Brought(security_group=made)
    body = {"security_group": {"name": step.name, "description": step.description}}
    answer = project.post(Api.NEUTRON, "group", "/security-groups", body, what=step.name, holds="security_group")
    return Brought(security_group=responses.security_group(answer))


def _change_rules(project: Project, step: steps.ChangeRules) -> Brought:
    try:
        made = _mend_rules(project, step) if attempt.repeated() else _create_rules(project, step)
        _check_rules(made, step)  # before the deletion, so that clients keep the rules that they use
    except Throttled as error:
        if error.code != QUOTA or not step.delete:
            raise
        # The outdated rules count against the quota. If it is still too low, as many new rules as fit are created.
        _delete_rules(project, step)
        made = _mend_rules(project, step)
        _check_rules(made, step)
    else:
        _delete_rules(project, step)
    change = RuleChange(security_group_id=step.security_group_id, made=made, gone=step.delete)
    return Brought(rules=change)


def _check_rules(made: Iterable[SecurityGroupRule], step: steps.ChangeRules) -> None:
    there = {meaning(each) for each in made}
    _check_effect(all(meaning(each) in there for each in step.create), step)


def _delete_rules(project: Project, step: steps.ChangeRules) -> None:
    for id_ in step.delete:
        project.delete(Api.NEUTRON, "rule", f"/security-group-rules/{id_}", what=id_)


def _create_rules(project: Project, step: steps.ChangeRules) -> tuple[SecurityGroupRule, ...]:
    if not step.create:
        return ()
    group = step.security_group_id
    kind, what = "security_group_rules", f"of group {group}"
    body = {kind: [_rule_body(group, each) for each in step.create]}
    try:
        made = project.post(Api.NEUTRON, "rule", "/security-group-rules", body, what=what, holds=kind)
    except Conflict as error:
        if error.code != _RULE_EXISTS:
            raise
        return _mend_rules(project, step)
    return tuple(map(responses.rule, made)) if isinstance(made, list) else ()


def _mend_rules(project: Project, step: steps.ChangeRules) -> tuple[SecurityGroupRule, ...]:
    group = step.security_group_id
    path = f"/security-groups/{group}"
    found = project.get(Api.NEUTRON, "group", path, what=group, holds="security_group")
    there = {meaning(each): each for each in responses.security_group(found).rules if each.id not in step.delete}
    for wanted in step.create:
        if meaning(wanted) in there:
            continue
        kind, what = "security_group_rule", f"of group {group}"
        body = {kind: _rule_body(group, wanted)}
        try:
            made = project.post(Api.NEUTRON, "rule", "/security-group-rules", body, what=what, holds=kind)
        except Conflict as error:
            if error.code != _RULE_EXISTS:
                raise
            continue  # Neutron considers it equal to another rule
        there[meaning(wanted)] = responses.rule(made)
    requested = {meaning(each) for each in step.create}
    return tuple(each for key, each in there.items() if key in requested)


def _rule_body(group: str, rule: SecurityGroupRule) -> JsonObject:
    body = rule.model_dump(exclude={"id"}, exclude_none=True)
    return {"security_group_id": group, **{name: value for name, value in body.items() if value != ""}}


# --- ports ---


def _create_port(project: Project, step: steps.CreatePort) -> Brought:
    if attempt.repeated():
        named = observation.list_ports(project, ("name", step.name))
        if made := _made_before(named, step.description):
            return Brought(port=made)
    body: JsonObject = {
        "name": step.name,
        "description": step.description,
        "network_id": step.network_id,
        "security_groups": list(step.security_groups),
    }
    if step.subnet_id:
        body["fixed_ips"] = [{"subnet_id": step.subnet_id}]
    if step.allowed_addresses:
        body["allowed_address_pairs"] = _pairs(step.allowed_addresses)
    # The subnet first: Neutron's message for a subnet of another network names both.
    with _chosen({"subnetID": step.subnet_id, "networkID": step.network_id}):
        answer = project.post(Api.NEUTRON, "port", "/ports", {"port": body}, what=step.name, holds="port")
    return Brought(port=responses.port(answer))


def _update_port(project: Project, step: steps.UpdatePort) -> Brought:
    body: JsonObject = {}
    if step.security_groups is not None:
        body["security_groups"] = list(step.security_groups)
    if step.allowed_addresses is not None:
        body["allowed_address_pairs"] = _pairs(step.allowed_addresses)
    path = f"/ports/{step.port_id}"
    updated = project.put(Api.NEUTRON, "port", path, {"port": body}, what=step.port_id, holds="port")
    port = responses.port(updated)
    grouped = step.security_groups is None or {*port.security_groups} == {*step.security_groups}
    addresses = step.allowed_addresses
    allowed = addresses is None or bare_addresses(port.allowed_addresses) == bare_addresses(addresses)
    _check_effect(grouped and allowed, step)
    return Brought(port=port)


def _delete_port(project: Project, step: steps.DeletePort) -> Brought:
    try:
        project.delete(Api.NEUTRON, "port", f"/ports/{step.id}", what=step.id)
    except (Conflict, Denied) as error:
        port = observation.get_port(project, step.id)
        if port is not None:
            raise _held(port, error) from error.__cause__
    return Brought(gone=step.id)


def _held(port: CloudPort, error: ApiError) -> ApiError:
    """The error for a port in use. At first it is Pending, because Nova detaches a port a moment after its server is
    gone.
    """
    if not port.device_id or attempt.number() >= _PATIENT_ATTEMPTS:
        return error
    message = f"port {port.id} is still in use by {port.device_id}"
    return Pending(message, code=STILL_HELD, delay=attempt.growing(_GOING_SECONDS))


def _pairs(addresses: Iterable[str]) -> list[dict[str, str]]:
    return [{"ip_address": each} for each in addresses]


@contextmanager
def _chosen(references: Mapping[str, str]) -> Iterator[None]:
    """Turn a refusal of a network or subnet in the spec into an Invalid that names the spec's field.

    `references` maps fields of `defaultNetwork` to ids. Unlike a 404 for Perdure's own object, such a refusal does not
    end by itself.
    """
    try:
        yield
    except (Absent, Invalid) as error:
        for field, id_ in references.items():
            if id_ and id_ in error.message:
                message = (
                    f"spec.infrastructure.defaultNetwork.{field} is {id_}, which cannot be used. Correct the field, or "
                    f"the Service's annotation that sets it. {error.message}"
                )
                raise Invalid(message, code=error.code) from error
        raise


# --- floating IPs ---


def _create_floating_ip(project: Project, step: steps.CreateFloatingIp) -> Brought:
    if attempt.repeated() and (found := _floating_ip_of(project, step)):
        return Brought(floating_ip=found)
    body = {
        "floatingip": {
            "floating_network_id": step.network_id,
            "description": step.description,
            "port_id": step.port_id,
        }
    }
    try:
        with _chosen({"floatingNetID": step.network_id}):
            answer = project.post(
                Api.NEUTRON, "floatingip", "/floatingips", body, what=step.description, holds="floatingip"
            )
    except Conflict:
        # A port has one floating IP: an earlier attempt of this step may just have created it.
        found = _floating_ip_of(project, step)
        if found is None:
            raise
        return Brought(floating_ip=found)
    made = responses.floating_ip(answer)
    if made.port_id == step.port_id:
        return Brought(floating_ip=made)
    found = observation.get_floating_ip(project, made.id)  # the answer may be incomplete
    if found is not None and not found.port_id and found.description == step.description:
        # Without its port, no later attempt would recognize the floating IP as ours.
        project.delete(Api.NEUTRON, "floatingip", f"/floatingips/{found.id}", what=found.id)
    _check_effect(found is not None and found.port_id == step.port_id, step)
    return Brought(floating_ip=found)


def _floating_ip_of(project: Project, step: steps.CreateFloatingIp) -> FloatingIp | None:
    found = observation.list_floating_ips(project, ("port_id", step.port_id))
    return next((each for each in found if each.description == step.description), None)


def _update_floating_ip(project: Project, step: steps.UpdateFloatingIp) -> Brought:
    body: JsonObject = {}
    if step.port_id is not None:
        body["port_id"] = step.port_id or None
    if step.description is not None:
        body["description"] = step.description
    id_, change = step.floating_ip_id, {"floatingip": body}
    updated = project.put(Api.NEUTRON, "floatingip", f"/floatingips/{id_}", change, what=id_, holds="floatingip")
    floating = responses.floating_ip(updated)
    led, described = step.port_id in (None, floating.port_id), step.description in (None, floating.description)
    _check_effect(led and described, step)
    return Brought(floating_ip=floating)


# --- server groups and servers ---


def _create_server_group(project: Project, step: steps.CreateServerGroup) -> Brought:
    if attempt.repeated():
        for each in observation.list_server_groups(project):
            if each.name == step.name and each.policy == step.policy and not each.members:
                return Brought(server_group=each)
    body = {"server_group": {"name": step.name, "policies": [step.policy]}}
    path, holds = "/os-server-groups", "server_group"
    answer = project.post(Api.NOVA, "servergroup", path, body, what=step.name, holds=holds, version=SERVER_GROUPS)
    group = responses.server_group(answer)
    _check_effect(group.policy == step.policy, step)
    return Brought(server_group=group)


def _create_server(project: Project, step: steps.CreateServer, user_data: Callable[[], str]) -> Brought:
    if attempt.repeated() and (found := _server_of(project, step)):
        return Brought(server=found)
    body = _server_body(project, step, user_data())
    try:
        answer = project.post(Api.NOVA, "server", "/servers", body, what=step.name, holds="server")
    except Conflict:
        # A port has one server: an earlier attempt of this step may just have created it.
        found = _server_of(project, step)
        if found is None:
            raise
        return Brought(server=found)
    return Brought(server=Server(id=text(answer, "id"), name=step.name, status="BUILD", uid=step.uid))


def _server_of(project: Project, step: steps.CreateServer) -> Server | None:
    found = observation.servers_named(project, step.name)
    return select(found, Owner(uid=step.uid, inherited=True, unique=True), lambda each: each.uid).selected


def _server_body(project: Project, step: steps.CreateServer, user_data: str) -> JsonObject:
    server: JsonObject = {
        "name": step.name,
        "flavorRef": flavor_id(project, step.flavor),
        "imageRef": image_id(project, step.image),
        "user_data": base64.b64encode(user_data.encode()).decode(),
        "networks": [
            {"uuid": step.network_id, "port": step.port_id},
            *({"uuid": each} for each in step.additional_networks),
        ],
        "metadata": {responses.MACHINE_UID: step.uid},
    }
    if step.availability_zone:
        server["availability_zone"] = step.availability_zone
    if step.key_name:
        server["key_name"] = step.key_name
    hints: JsonObject = {"os:scheduler_hints": {"group": step.server_group_id}} if step.server_group_id else {}
    return {"server": server, **hints}


def _delete_server(project: Project, step: steps.DeleteServer) -> Brought:
    if step.asked or attempt.repeated():
        found = observation.get_server(project, step.id)
        if found is None:
            return Brought(gone=step.id)
        # Nova shows DELETED for a moment, or for good if its compute service died: another deletion does no harm.
        if found.deleting and found.status.upper() != "DELETED":
            raise _going(step)
        if attempt.number() >= _PATIENT_ATTEMPTS and found.status.upper() == "ERROR":
            raise Conflict(f"server {found.name} ({step.id}) cannot be deleted: {found.fault}", code=NOT_DELETED)
    if not project.delete(Api.NOVA, "server", f"/servers/{step.id}", what=step.id):
        return Brought(gone=step.id)
    raise _going(step)


def _going(step: steps.DeleteServer) -> Pending:
    return Pending(f"server {step.id} is being deleted", code="DELETING", delay=attempt.growing(_GOING_SECONDS))


# --- all steps but the creation of a server, which also needs user data ---


def _deletion(api: Api, kind: str, path: str) -> Effect:
    def delete(project: Project, step: Any) -> Brought:
        project.delete(api, kind, f"{path}/{step.id}", what=step.id)
        return Brought(gone=step.id)

    return delete


EFFECTS: Mapping[type[steps.Step], Effect] = {
    steps.CreateSecurityGroup: _create_security_group,
    steps.ChangeRules: _change_rules,
    steps.CreatePort: _create_port,
    steps.UpdatePort: _update_port,
    steps.CreateFloatingIp: _create_floating_ip,
    steps.UpdateFloatingIp: _update_floating_ip,
    steps.CreateServerGroup: _create_server_group,
    steps.DeleteServer: _delete_server,
    steps.DeletePort: _delete_port,
    steps.DeleteFloatingIp: _deletion(Api.NEUTRON, "floatingip", "/floatingips"),
    steps.DeleteServerGroup: _deletion(Api.NOVA, "servergroup", "/os-server-groups"),
    steps.DeleteSecurityGroup: _deletion(Api.NEUTRON, "group", "/security-groups"),
}
