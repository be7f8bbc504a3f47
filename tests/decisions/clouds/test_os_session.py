"""One token for all calls of a credential, and what becomes of calls that fail: against a small cloud of the test's.

The cloud speaks HTTP on a loopback port and answers as each test sets it; the client is the real one.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from os_cloud import JsonHandler, LoopbackServer
from prometheus_client import REGISTRY, generate_latest

from activities.openstack.call_limits import Guard
from activities.openstack.credentials import Credentials
from activities.openstack.session import Api, Project
from engine.errors import Absent, Denied, Invalid, Unavailable
from engine.settings import Settings

Answer = tuple[int, object]
PORT = {"port": {"id": "p-1", "name": "lbs/web"}}


class Cloud:
    """Keystone, Neutron, Nova and Glance on one port; `answers` are given in turn, the last one for ever."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.bodies: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self.answers: list[Answer | str] = [(200, PORT)]
        self.keystone: list[int] = [201]
        self.lifetime = timedelta(hours=1)
        self.tokens = 0
        self._lock = threading.Lock()
        cloud = self

        class Handler(JsonHandler):
            def serve(self) -> None:
                cloud._serve(self, self.read_body())

        self._server = LoopbackServer(Handler)
        self.url, self.close = self._server.url, self._server.close

    def _serve(self, request: JsonHandler, body: Any) -> None:
        with self._lock:
            parts = urlsplit(request.path)
            if parts.path == "/v3/auth/tokens":
                self.tokens += 1
                status = self.keystone.pop(0) if len(self.keystone) > 1 else self.keystone[0]
                answer: Answer | str = (status, self._token() if status == 201 else _keystone_error(status))
            else:
                self.calls.append(f"{request.command} {parts.path}" + (f"?{parts.query}" if parts.query else ""))
                self.bodies.append(body)
                self.headers.append(dict(request.headers))
                answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, str):
            request.send_response(200)
            request.send_header("Content-Length", str(len(answer) + 10))
            request.end_headers()
            request.wfile.write(answer.encode())
            request.close_connection = True
            return
        status, message = answer
        text = (
            b""
            if message is None
            else json.dumps(message).encode()
            if not isinstance(message, str)
            else message.encode()
        )
        request.answer(status, text, f"token-{self.tokens}")

    def _token(self) -> object:
        services = {"compute": "/v2.1", "network": "", "image": ""}
        ends = (datetime.now(UTC) + self.lifetime).isoformat()
        catalog = [
            {
                "type": type_,
                "endpoints": [
                    {"interface": "admin", "region": "north", "region_id": "north", "url": "http://127.0.0.1:9"},
                    {"interface": "public", "region": "north", "region_id": "north", "url": f"{self.url}{path}"},
                ],
            }
            for type_, path in services.items()
        ]
        project = {"id": "project-1", "name": "shop", "domain": {"id": "default", "name": "Default"}}
        return {"token": {"expires_at": ends, "catalog": catalog, "project": project, "methods": ["password"]}}


def _keystone_error(status: int) -> object:
    return {"error": {"code": status, "title": "Unauthorized", "message": "The request requires authentication."}}


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    cloud = Cloud()
    yield cloud
    cloud.close()


def opened(cloud: Cloud, region: str = "north", ca_file: str = "", **settings: Any) -> Project:
    credentials = Credentials(
        auth_url=f"{cloud.url}/v3",
        username="robot",
        password="hunter2",
        domain_name="Default",
        project_name="shop",
        region=region,
        ca_file=ca_file,
    )
    return Project(credentials, Guard(credentials.project, 16, 1000), Settings(**settings))


@pytest.fixture
def project(cloud: Cloud) -> Iterator[Project]:
    with closing(opened(cloud)) as project:
        yield project


def port(project: Project) -> object:
    return project.get(Api.NEUTRON, "port", "/ports/p-1", what="p-1", holds="port")


def create(project: Project) -> object:
    return project.post(Api.NEUTRON, "port", "/ports", {"port": {}}, what="lbs/web", holds="port")


# The token.


def test_all_threads_share_one_token_and_nothing_is_discovered(cloud: Cloud, project: Project) -> None:
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda _: port(project), range(24))) == [PORT["port"]] * 24
    assert cloud.tokens == 1
    assert cloud.calls == ["GET /v2.0/ports/p-1"] * 24
    assert {headers["X-Auth-Token"] for headers in cloud.headers} == {"token-1"}


def test_a_token_that_is_refused_is_renewed_once_and_the_call_repeated(cloud: Cloud, project: Project) -> None:
    port(project)
    cloud.answers = [(401, "no"), (201, PORT)]
    assert create(project) == PORT["port"]
    assert cloud.tokens == 2
    assert [headers["X-Auth-Token"] for headers in cloud.headers] == ["token-1", "token-1", "token-2"]


def test_a_service_that_refuses_each_token_is_asked_twice(cloud: Cloud, project: Project) -> None:
    cloud.answers = [(401, "no")]
    with pytest.raises(Denied) as refused:
        create(project)
    assert refused.value.code == "Unauthorized"
    assert (len(cloud.calls), cloud.tokens) == (2, 2)


def test_a_token_is_renewed_before_it_ends(cloud: Cloud, project: Project) -> None:
    cloud.lifetime = timedelta(seconds=100)
    port(project)
    cloud.lifetime = timedelta(hours=1)
    port(project)
    port(project)
    assert cloud.tokens == 2


def test_credentials_that_keystone_refuses_are_not_tried_again_at_once(cloud: Cloud, project: Project) -> None:
    cloud.keystone = [401]
    for _ in range(3):
        with pytest.raises(Denied) as refused:
            port(project)
        assert "hunter2" not in refused.value.message
    assert project.token.refused
    assert (cloud.tokens, cloud.calls) == (1, [])


def test_a_short_outage_of_keystone_locks_no_caller_out(cloud: Cloud, project: Project) -> None:
    cloud.keystone = [503, 201]
    with pytest.raises(Unavailable):
        port(project)
    assert port(project) == PORT["port"]


def test_an_unknown_region_is_reported(cloud: Cloud) -> None:
    with closing(opened(cloud, region="south")) as project, pytest.raises(Invalid) as refused:
        port(project)
    assert refused.value.code == "NoEndpoint"


# Calls.


def test_a_read_that_fails_quickly_is_repeated_once(cloud: Cloud, project: Project) -> None:
    cloud.answers = ["{", (200, PORT)]
    assert port(project) == PORT["port"]
    assert len(cloud.calls) == 2


def test_an_effect_is_never_repeated_by_itself(cloud: Cloud, project: Project) -> None:
    cloud.answers = ["{", (201, PORT)]
    with pytest.raises(Unavailable) as lost:
        create(project)
    assert lost.value.code == "NoAnswer"
    assert len(cloud.calls) == 1


def test_a_refusal_of_the_service_is_not_repeated(cloud: Cloud, project: Project) -> None:
    cloud.answers = [(503, "away")]
    with pytest.raises(Unavailable):
        port(project)
    assert len(cloud.calls) == 1


@pytest.mark.parametrize(("api", "kind"), [(Api.NOVA, "flavor"), (Api.NEUTRON, "port"), (Api.GLANCE, "image")])
def test_no_service_is_asked_again_by_the_library(cloud: Cloud, project: Project, api: Api, kind: str) -> None:
    cloud.answers = [(503, "away")]
    with pytest.raises(Unavailable):
        project.pages(api, kind, f"/{kind}s", f"{kind}s")
    assert len(cloud.calls) == 1


def test_a_silent_service_is_given_up_after_the_timeout(cloud: Cloud) -> None:
    held = threading.Event()
    serve: Callable[..., None] = cloud._serve

    def hanging(request: BaseHTTPRequestHandler, body: Any) -> None:
        if not request.path.startswith("/v3"):
            held.wait(20)
        serve(request, body)

    cloud._serve = hanging  # type: ignore[method-assign]
    with closing(opened(cloud, call_timeout=timedelta(seconds=0.3))) as project:
        with pytest.raises(Unavailable):
            create(project)
        held.set()


@pytest.mark.parametrize("keystone", [True, False])
def test_a_call_whose_certificates_were_removed_has_no_answer(cloud: Cloud, keystone: bool) -> None:
    secured = cloud.url.replace("http:", "https:")
    if keystone:
        cloud.url = secured
    with closing(opened(cloud, ca_file="/nowhere/ca.pem")) as project:
        cloud.url = secured  # the address of all services in the catalog
        with pytest.raises(Unavailable, match=r"/nowhere/ca\.pem") as lost:
            port(project)
    assert lost.value.code == "NoAnswer"


def test_an_answer_that_is_no_json_is_unreadable(cloud: Cloud, project: Project) -> None:
    cloud.answers = [(200, "<html>")]
    with pytest.raises(Unavailable) as unreadable:
        port(project)
    assert unreadable.value.code == "UnreadableAnswer"


def test_a_redirect_is_not_followed_with_a_token(cloud: Cloud, project: Project) -> None:
    cloud.answers = [(302, "")]
    with pytest.raises(Invalid):
        port(project)
    assert len(cloud.calls) == 1


def test_deleting_says_whether_it_was_there(cloud: Cloud, project: Project) -> None:
    gone = {"NeutronError": {"type": "PortNotFound", "message": "gone", "detail": ""}}
    cloud.answers = [(204, None), (404, gone), (404, "<html>")]
    assert project.delete(Api.NEUTRON, "port", "/ports/p-1", what="p-1")
    assert not project.delete(Api.NEUTRON, "port", "/ports/p-1", what="p-1")
    with pytest.raises(Unavailable):
        project.delete(Api.NEUTRON, "port", "/ports/p-1", what="p-1")


def test_absence_is_reported(cloud: Cloud, project: Project) -> None:
    cloud.answers = [(404, {"itemNotFound": {"code": 404, "message": "gone"}})]
    with pytest.raises(Absent):
        project.get(Api.NOVA, "server", "/servers/s", what="s", holds="server")
    assert cloud.calls == ["GET /v2.1/servers/s"]


def test_a_microversion_is_asked_for_where_one_is_needed(cloud: Cloud, project: Project) -> None:
    cloud.answers = [(200, {"server_groups": []}), (200, {"server": {"id": "s"}})]
    project.get(Api.NOVA, "servergroup", "/os-server-groups", what="all", holds="server_groups", version="2.15")
    project.get(Api.NOVA, "server", "/servers/s", what="s", holds="server")
    assert [headers.get("OpenStack-API-Version") for headers in cloud.headers] == ["compute 2.15", None]


def test_a_list_is_read_page_after_page_of_the_tokens_project(cloud: Cloud, project: Project) -> None:
    following = "https://inner.example/v2.0/ports?name=a&project_id=project-1&marker=1"
    cloud.answers = [
        (200, {"ports": [{"id": "1"}], "ports_links": [{"rel": "next", "href": following}]}),
        (200, {"ports": [{"id": "2"}], "ports_links": [{"rel": "previous", "href": "x"}]}),
    ]
    found = project.pages(Api.NEUTRON, "port", "/ports", "ports", query=[("name", "a")])
    assert [each["id"] for each in found] == ["1", "2"]
    assert [parse_qsl(urlsplit(call).query) for call in cloud.calls] == [
        [("name", "a"), ("project_id", "project-1")],
        [("name", "a"), ("project_id", "project-1"), ("marker", "1")],
    ]


def test_pages_that_repeat_end_the_list_as_unreadable(cloud: Cloud, project: Project) -> None:
    following = "https://inner.example/v2.0/ports?marker=1"
    cloud.answers = [(200, {"ports": [{"id": "1"}], "ports_links": [{"rel": "next", "href": following}]})]
    with pytest.raises(Unavailable, match="its pages repeat"):
        project.pages(Api.NEUTRON, "port", "/ports", "ports")
    assert len(cloud.calls) == 2


def test_images_are_read_page_after_page(cloud: Cloud, project: Project) -> None:
    cloud.answers = [
        (200, {"images": [{"id": "1"}], "next": "/v2/images?marker=1"}),
        (200, {"images": [{"id": "2"}]}),
    ]
    assert len(project.pages(Api.GLANCE, "image", "/images", "images")) == 2
    assert cloud.calls == ["GET /v2/images", "GET /v2/images?marker=1"]


def test_observing_sends_no_effect(cloud: Cloud) -> None:
    with closing(opened(cloud, mode="observe")) as project:
        with pytest.raises(Denied) as refused:
            create(project)
        assert refused.value.code == "ObserveMode"
        assert (cloud.calls, cloud.tokens) == ([], 0)
        assert port(project) == PORT["port"]


# Numbers.


def counted(operation: str) -> float:
    lines = generate_latest(REGISTRY).decode().splitlines()
    name = f'yawol_openstack{{api="neutron",object="port",operation="{operation}"}} '
    return next((float(line.removeprefix(name)) for line in lines if line.startswith(name)), 0.0)


def test_calls_are_counted_under_the_replaced_systems_name_a_list_once(cloud: Cloud, project: Project) -> None:
    before = counted("list"), counted("create")
    following = f"{cloud.url}/v2.0/ports?marker=1"
    cloud.answers = [
        (200, {"ports": [{"id": "1"}], "ports_links": [{"rel": "next", "href": following}]}),
        (200, {"ports": [{"id": "2"}]}),
        (503, "away"),
    ]
    project.pages(Api.NEUTRON, "port", "/ports", "ports")
    with pytest.raises(Unavailable):
        create(project)
    assert (counted("list"), counted("create")) == (before[0] + 1, before[1] + 1)
