"""A small cloud over HTTP: as much of Keystone, Neutron and Nova as steps need, in memory, that can lose its answers.

It is for what a real control plane cannot show in milliseconds: every step repeated at every moment. What the real one
answers is shown by `tests/integration/openstack`. Names are not unique here either, a port leads to one floating IP and
carries one server, a bulk of rules is made as a whole or not at all, groups in use do not go, servers go slowly.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from temporalio.testing import ActivityEnvironment

from activities.openstack.call_limits import Guard
from activities.openstack.credentials import Credentials
from activities.openstack.session import Project
from engine.settings import Settings

Json = dict[str, Any]
R = TypeVar("R")

SINGULAR = {
    "security-groups": "security_group",
    "security-group-rules": "security_group_rule",
    "ports": "port",
    "floatingips": "floatingip",
    "servers": "server",
    "os-server-groups": "server_group",
}
_RULE_MEANING = ("direction", "ethertype", "protocol", "port_range_min", "port_range_max", "remote_ip_prefix")


def run(effect: Callable[[], R], number: int = 1) -> R:
    """What an activity's effect returns in such an attempt."""
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, attempt=number, started_time=datetime.now(UTC))
    return environment.run(effect)


class RefusedError(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, type_: str, message: str = "no") -> None:
        super().__init__(type_)
        self.status = status
        self.type = type_
        self.message = message


class LoopbackServer:
    """Serves HTTP on a free loopback port, by threads."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it; what is under way is broken off."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class JsonHandler(BaseHTTPRequestHandler):
    """Answers every method alike."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""

    def read_body(self) -> Any:
        """The body of the request."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return json.loads(body) if body else None

    def answer(self, status: int, text: bytes, token: str) -> None:
        """Send an answer, with a token of Keystone's."""
        self.send_response(status)
        self.send_header("X-Subject-Token", token)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def serve(self) -> None:
        """Answer one request."""
        raise NotImplementedError

    def do_GET(self) -> None:
        """As http.server calls it."""
        self.serve()

    do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 - the names that http.server calls


class SmallCloud:
    """Holds objects by kind and id; `trouble` is asked about each call that is to change something."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Json]] = {kind: {} for kind in SINGULAR}
        self.calls: list[str] = []
        self.bodies: list[Any] = []
        # "before": refused with 503, nothing done; "after": done, and refused all the same; "empty": success without
        # content, nothing done; "unsaid": the same, but done; "curt": done, the answer has only the id; "" undisturbed.
        self.trouble: Callable[[str], str] = lambda call: ""
        self.missing: set[str] = set()  # ids that creations are refused for because there is no such object
        self.most_rules = 1000  # the project's quota of security group rules
        self.ignored: set[str] = set()  # fields of requests that have no effect
        self.deletions_take = 0  # looks at a deleted server before it is gone
        self._numbers = count(1)
        self._lock = threading.Lock()
        cloud = self

        class Handler(JsonHandler):
            def serve(self) -> None:
                body = self.read_body()
                with cloud._lock:
                    status, answer = cloud._serve(self.command, self.path, body)
                self.answer(status, json.dumps(answer).encode() if answer is not None else b"", "token")

        self._server = LoopbackServer(Handler)
        self.url, self.close = self._server.url, self._server.close

    def project(self) -> Project:
        """A client of its one project."""
        credentials = Credentials(
            auth_url=f"{self.url}/v3", username="u", password="p", domain_id="default", project_id="project"
        )
        return Project(credentials, Guard(credentials.project, 16, 1000), Settings())

    def put(self, kind: str, **given: Any) -> str:
        """An object that another client has made."""
        return str(self._create(kind, given)["id"])

    # --- answers ---

    def _serve(self, method: str, target: str, body: Any) -> tuple[int, Any]:
        parts = urlsplit(target)
        if parts.path == "/v3/auth/tokens":
            return 201, self._token()
        call = f"{method} {parts.path}"
        if isinstance(body, dict):
            body = {kind: self._heeded(given) for kind, given in body.items()}
        self.calls.append(call)
        self.bodies.append(body)
        trouble = self.trouble(call)
        if trouble == "before":
            return 503, {"NeutronError": {"type": "Away", "message": "away"}}
        if trouble == "empty":
            return 200, {}
        try:
            answer = self._answer(method, parts.path.split("/")[2:], parse_qsl(parts.query), body)
        except RefusedError as error:
            return error.status, {"NeutronError": {"type": error.type, "message": error.message}}
        if trouble == "curt":
            return answer[0], {kind: {"id": given["id"]} for kind, given in answer[1].items()}
        return {"after": (504, "lost"), "unsaid": (200, {})}.get(trouble, answer)

    def _heeded(self, given: Any) -> Any:
        if isinstance(given, list):
            return [self._heeded(each) for each in given]
        if not isinstance(given, dict):
            return given
        return {name: None if name in self.ignored else value for name, value in given.items()}

    def _answer(self, method: str, path: list[str], query: list[tuple[str, str]], body: Any) -> tuple[int, Any]:
        kind, id_ = path[0], path[1] if len(path) > 1 else ""
        if method == "POST":
            return self._post(kind, body)
        if not id_ or id_ == "detail":
            return 200, {self._plural(kind): [self._shown(kind, each) for each in self._listed(kind, query)]}
        found = self.objects[kind].get(id_)
        if found is None:
            raise RefusedError(404, "NotFound")
        if method == "GET":
            self._let_go(kind, found)
            if id_ not in self.objects[kind]:
                raise RefusedError(404, "NotFound")
            return 200, {SINGULAR[kind]: self._shown(kind, found)}
        if method == "PUT":
            found.update(body[SINGULAR[kind]])
            return 200, {SINGULAR[kind]: self._shown(kind, found)}
        self._delete(kind, found)
        return 204, None

    def _refuse_missing(self, given: Json) -> None:
        """Neutron's answers where a creation names what does not exist."""
        named = [
            *(("Network", given.get(field)) for field in ("network_id", "floating_network_id")),
            *(("Subnet", each.get("subnet_id")) for each in given.get("fixed_ips") or ()),
            *(("Security group", each) for each in given.get("security_groups") or ()),
        ]
        for what, id_ in named:
            if id_ in self.missing:
                code = f"{what.title().replace(' ', '')}NotFound"
                raise RefusedError(404, code, f"{what} {id_} could not be found.")

    def _count_rules(self, new: int) -> None:
        if len(self.objects["security-group-rules"]) + new > self.most_rules:
            raise RefusedError(409, "OverQuota")

    def _post(self, kind: str, body: Any) -> tuple[int, Any]:
        if "security_group_rules" in body:
            wanted = body["security_group_rules"]
            if any(self._exists(each) for each in wanted):
                raise RefusedError(409, "SecurityGroupRuleExists")
            self._count_rules(len(wanted))
            return 201, {"security_group_rules": [self._create(kind, each) for each in wanted]}
        given = body[SINGULAR[kind]]
        self._refuse_missing(given)
        if kind == "security-group-rules":
            if self._exists(given):
                raise RefusedError(409, "SecurityGroupRuleExists")
            self._count_rules(1)
        if kind == "floatingips" and any(
            each["port_id"] == given["port_id"] for each in self.objects["floatingips"].values()
        ):
            raise RefusedError(409, "FloatingIPPortAlreadyAssociated")
        if kind == "servers":
            return 202, {"server": {"id": self._boot(given)["id"]}}
        return 201, {SINGULAR[kind]: self._shown(kind, self._create(kind, given))}

    def _boot(self, given: Json) -> Json:
        port = self.objects["ports"].get(given["networks"][0]["port"])
        if port is None:
            raise RefusedError(400, "badRequest")
        if port.get("device_id"):
            raise RefusedError(409, "conflictingRequest")
        made = self._create("servers", {**given, "status": "BUILD", "created": "2026-05-01T12:00:00Z"})
        port["device_id"] = made["id"]
        return made

    def _create(self, kind: str, given: Json) -> Json:
        number = next(self._numbers)
        made: Json = {**given, "id": f"{SINGULAR[kind]}-{number}", "created_at": f"2026-05-01T12:00:{number % 60:02}Z"}
        if kind == "ports":
            made.setdefault("fixed_ips", [{"ip_address": f"10.1.0.{number}", "subnet_id": "sub"}])
        if kind == "floatingips":
            made["floating_ip_address"] = f"203.0.113.{number}"
        self.objects[kind][made["id"]] = made
        if kind == "security-groups":
            for ethertype in ("IPv4", "IPv6"):
                rule = {"security_group_id": made["id"], "direction": "egress", "ethertype": ethertype}
                self._create("security-group-rules", rule)
        return made

    def _delete(self, kind: str, found: Json) -> None:
        id_ = found["id"]
        if kind == "servers" and self.deletions_take:
            found["OS-EXT-STS:task_state"] = "deleting"
            found["looks"] = self.deletions_take
            return
        if kind == "ports" and found.get("device_id"):
            raise RefusedError(403, "PolicyNotAuthorized")
        users = [port for port in self.objects["ports"].values() if id_ in port.get("security_groups", ())]
        if kind == "security-groups" and users:
            raise RefusedError(409, "SecurityGroupInUse")
        del self.objects[kind][id_]
        for port in self.objects["ports"].values():
            if port.get("device_id") == id_:
                port["device_id"] = ""

    def _let_go(self, kind: str, found: Json) -> None:
        if kind == "servers" and "looks" in found:
            found["looks"] -= 1
            if found["looks"] <= 0:
                self.deletions_take = 0
                self._delete(kind, found)

    def _exists(self, rule: Json) -> bool:
        key = [rule.get(name) for name in _RULE_MEANING]
        return any(
            each["security_group_id"] == rule["security_group_id"] and [each.get(name) for name in _RULE_MEANING] == key
            for each in self.objects["security-group-rules"].values()
        )

    def _listed(self, kind: str, query: list[tuple[str, str]]) -> list[Json]:
        wanted: dict[str, set[str]] = {}
        for name, value in query:
            wanted.setdefault(name, set()).add(value)
        wanted.pop("project_id", None)
        return [each for each in self.objects[kind].values() if all(_fits(kind, each, *one) for one in wanted.items())]

    def _shown(self, kind: str, found: Json) -> Json:
        if kind != "security-groups":
            return found
        rules = [
            each for each in self.objects["security-group-rules"].values() if each["security_group_id"] == found["id"]
        ]
        return {**found, "security_group_rules": rules}

    @staticmethod
    def _plural(kind: str) -> str:
        return {"os-server-groups": "server_groups"}.get(kind, kind.replace("-", "_"))

    def _token(self) -> Json:
        catalog = [
            {"type": type_, "endpoints": [{"interface": "public", "region": "r", "region_id": "r", "url": url}]}
            for type_, url in (("network", self.url), ("compute", f"{self.url}/v2.1"))
        ]
        ends = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
        return {"token": {"expires_at": ends, "catalog": catalog, "project": {"id": "project", "name": "shop"}}}


def _fits(kind: str, found: Json, name: str, values: set[str]) -> bool:
    if name == "security_groups":
        return bool(values & set(found.get("security_groups", ())))
    if kind == "servers" and name == "name":
        return any(value in found["name"] for value in values)  # a pattern, to Nova
    return found.get(name) in values
