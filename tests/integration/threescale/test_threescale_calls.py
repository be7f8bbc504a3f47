"""The simulator's manners: credentials, formats, ways to send a body, pages."""

from __future__ import annotations

from xml.etree import ElementTree

import httpx
import pytest
from threescale_process import Client, fresh

from localcloud.threescale.control import ThreescaleControl

pytestmark = pytest.mark.integration

DENIED = (403, {"error": "Access denied"})
NO_PERMISSION = (403, {"error": "Your access token does not have the correct permissions"})
NOT_FOUND = (404, {"status": "Not found"})


def bare(client: Client, path: str, **more: object) -> httpx.Response:
    """A call without the client's credential."""
    return httpx.get(f"{client.url}{path}", trust_env=False, timeout=60, **more)  # type: ignore[arg-type]


def test_a_call_without_a_credential_is_denied_with_403(client: Client) -> None:
    answer = bare(client, "/admin/api/services.json")

    assert (answer.status_code, answer.json()) == DENIED


@pytest.mark.parametrize("auth", [("", "{token}"), ("{token}", ""), ("{token}", "ignored")])
def test_the_token_may_be_the_user_or_the_password(client: Client, auth: tuple[str, str]) -> None:
    filled = tuple(part.format(token=client.token) for part in auth)

    assert bare(client, "/admin/api/services.json", auth=filled).status_code == 200


@pytest.mark.parametrize("name", ["access_token", "provider_key"])
def test_the_token_may_be_in_the_query(client: Client, name: str) -> None:
    assert bare(client, "/admin/api/services.json", params={name: client.token}).status_code == 200


def test_the_token_may_be_in_a_form_or_in_json(client: Client) -> None:
    where = f"{client.url}/admin/api/services.json"
    form = {"access_token": client.token, "name": fresh("Form")}
    sent = {"access_token": client.token, "name": fresh("Json")}

    assert httpx.post(where, data=form, trust_env=False).status_code == 201
    assert httpx.post(where, json=sent, trust_env=False).status_code == 201


def test_the_token_of_another_tenant_opens_nothing(client: Client, tenant: Client) -> None:
    assert bare(client, "/admin/api/services.json", auth=("", tenant.token)).status_code == 403


def test_a_token_without_the_scope_is_refused(client: Client, control: ThreescaleControl) -> None:
    token = control.add_token("3scale", scopes=["account_management"]).value
    limited = Client(client.url, token)

    assert limited.refused("GET", "registry/policies") == NO_PERMISSION
    assert limited.list("services")
    limited.close()


def test_a_token_that_may_only_read_writes_nothing(client: Client, control: ThreescaleControl) -> None:
    reader = Client(client.url, control.add_token("3scale", permission="ro").value)

    assert reader.refused("POST", "services", {"name": fresh("Never")}) == NO_PERMISSION
    assert reader.list("services")
    reader.close()


def test_a_revoked_token_is_denied(client: Client, control: ThreescaleControl) -> None:
    other = Client(client.url, control.add_token("3scale").value)
    assert other.list("services")
    control.revoke(other.token)

    assert other.refused("GET", "services") == DENIED
    other.close()


def test_the_token_of_a_member_is_forbidden(tenant: Client) -> None:
    user = tenant.post("users", username="member", email="member@example.com", password="secret123")
    made = tenant.post(f"users/{user['id']}/access_tokens", name="x", permission="rw", scopes=["account_management"])
    member = Client(tenant.url, made["value"])

    assert member.refused("GET", "services") == (403, {"status": "Forbidden"})
    member.close()


def test_a_suspended_tenant_answers_403_without_words(tenant: Client, control: ThreescaleControl) -> None:
    name = next(each.name for each in control.tenants() if each.url == tenant.url)
    control.suspend(name)
    assert tenant.refused("GET", "services") == (403, "")
    control.resume(name)

    assert tenant.list("services")


@pytest.mark.parametrize("path", ["services/999999", "services/nonsense", "nothing", "services/999999/metrics"])
def test_a_missing_object_is_not_found(client: Client, path: str) -> None:
    assert client.refused("GET", path) == NOT_FOUND


def test_a_method_that_a_path_has_not_is_not_found(client: Client) -> None:
    assert client.refused("DELETE", "services") == NOT_FOUND


def test_an_unknown_host_is_not_found(client: Client) -> None:
    answer = client.call("GET", "services", headers={"Host": "other-admin.example.com"})

    assert (answer.status_code, answer.json()) == NOT_FOUND


def test_a_tenant_is_found_by_its_host_name_on_every_port(
    client: Client, tenant: Client, control: ThreescaleControl
) -> None:
    record = next(each for each in control.tenants() if each.url == tenant.url)
    answer = httpx.get(
        f"{client.url}/admin/api/provider.json",
        headers={"Host": record.host},
        auth=("", tenant.token),
        trust_env=False,
    )

    assert answer.json()["account"]["id"] == record.id


def test_a_path_without_suffix_is_xml(client: Client) -> None:
    name = fresh("Xml")
    made = client.service(name)
    answer = client.call("GET", f"/admin/api/services/{made['id']}")

    assert answer.headers["Content-Type"].startswith("application/xml")
    root = ElementTree.fromstring(answer.content)
    assert (root.tag, root.findtext("name"), root.findtext("id")) == ("service", name, str(made["id"]))


def test_a_list_in_xml_has_its_objects_under_their_names(client: Client) -> None:
    made = client.service()
    plan = client.plan(made, name="Gold")
    root = ElementTree.fromstring(client.call("GET", f"/admin/api/services/{made['id']}/application_plans.xml").content)

    assert root.tag == "plans"
    assert [(each.tag, each.findtext("id"), each.get("default")) for each in root] == [
        ("plan", str(plan["id"]), "false")
    ]


def test_errors_in_xml_are_sentences(client: Client) -> None:
    answer = client.call("POST", "/admin/api/services.xml", {"name": ""})

    assert answer.status_code == 422
    errors = [each.text for each in ElementTree.fromstring(answer.content)]
    assert "Name can't be blank" in errors


def test_accept_decides_where_there_is_no_suffix(client: Client) -> None:
    answer = client.call("GET", "/admin/api/services", headers={"Accept": "application/json"})

    assert "services" in answer.json()


@pytest.mark.parametrize("path", ["/admin/api/services.csv", "/admin/api/backend_apis.xml"])
def test_a_format_that_there_is_not_is_not_acceptable(client: Client, path: str) -> None:
    status, body = client.refused("GET", path)

    assert status == 406
    assert set(body) == {"error"}


@pytest.mark.parametrize(
    "sent",
    [
        {"data": {"name": "{name}", "annotations[managed_by]": "operator"}},
        {"data": {"service[name]": "{name}", "service[annotations][managed_by]": "operator"}},
        {"json": {"name": "{name}", "annotations": {"managed_by": "operator"}}},
        {"json": {"service": {"name": "{name}", "annotations": {"managed_by": "operator"}}}},
        {"files": {"name": (None, "{name}"), "annotations[managed_by]": (None, "operator")}},
    ],
    ids=["form", "wrapped form", "json", "wrapped json", "multipart"],
)
def test_a_body_may_come_in_every_way(client: Client, sent: dict[str, object]) -> None:
    name = fresh("Sent")
    kind, body = next(iter(sent.items()))
    answer = client.http.post("/admin/api/services.json", **{kind: filled(body, name)})  # type: ignore[arg-type]

    assert answer.status_code == 201, answer.text
    made = answer.json()["service"]
    assert (made["name"], made["annotations"]) == (name, {"managed_by": "operator"})
    assert answer.headers["Location"].endswith(f"/admin/api/services/{made['id']}")


def filled(body: object, name: str) -> object:
    if isinstance(body, dict):
        return {key: filled(value, name) for key, value in body.items()}
    if isinstance(body, tuple):
        return tuple(filled(each, name) for each in body)
    return name if body == "{name}" else body


def test_unknown_and_read_only_fields_are_ignored(client: Client) -> None:
    made = client.service(description="before")
    back = client.put(f"services/{made['id']}", **{**made, "description": "after", "id": 1, "nonsense": [1]})

    assert (back["id"], back["description"], back["system_name"]) == (made["id"], "after", made["system_name"])


def items(client: Client) -> dict[str, str]:
    """Where one object of each kind is that can be changed."""
    service, backend, account = client.used_service(), client.backend(), client.account()
    plan, own, its = client.plan(service), f"services/{service['id']}", f"backend_apis/{backend['id']}"
    hits, theirs = client.hits(own)["id"], client.hits(its)["id"]
    applications = f"accounts/{account['id']}/applications"
    limits = f"application_plans/{plan['id']}/metrics/{hits}/limits"
    rule = {"http_method": "GET", "pattern": "/x", "delta": 1}
    lists: dict[str, dict[str, object]] = {
        f"{own}/metrics": {"friendly_name": "Bytes", "unit": "byte", "description": "text"},
        f"{own}/metrics/{hits}/methods": {"friendly_name": "Get"},
        f"{own}/proxy/mapping_rules": {**rule, "metric_id": hits, "last": True},
        f"{own}/backend_usages": {"backend_api_id": backend["id"], "path": "/other"},
        f"{own}/application_plans": {"name": "Gold", "setup_fee": "1.50", "approval_required": True},
        f"{own}/features": {"name": "Fast"},
        f"{its}/metrics": {"friendly_name": "Bytes", "unit": "byte"},
        f"{its}/metrics/{theirs}/methods": {"friendly_name": "Get"},
        f"{its}/mapping_rules": {**rule, "metric_id": theirs},
        limits: {"period": "day", "value": 5},
        applications: {"plan_id": plan["id"], "name": "App", "description": "It calls"},
        f"accounts/{account['id']}/users": {"username": fresh("u").replace(" ", ""), "password": "secret123"},
        "active_docs": {"name": fresh("Doc"), "body": "{}", "skip_swagger_validations": True},
    }
    lists[f"accounts/{account['id']}/users"]["email"] = f"{account['id']}@users.example.com"
    made = {path: f"{path}/{client.post(path, **body)['id']}" for path, body in lists.items()}
    client.post(f"{own}/proxy/deploy")  # or the first change of the proxy would
    alone = (own, its, f"{own}/proxy", f"accounts/{account['id']}", "provider")
    return {**made, **{path: path for path in alone}}


def test_an_answer_may_be_sent_back_whole_and_changes_nothing(tenant: Client) -> None:
    for path in items(tenant).values():
        ((wrapper, before),) = tenant.get(path).items()
        tenant.put(path, **before)
        tenant.put(path, **{wrapper: before})
        ((_, after),) = tenant.get(path).items()
        assert after == before, path


def test_a_body_that_is_no_json_is_a_bad_request(client: Client) -> None:
    answer = client.call("POST", "services", None, content=b"{", headers={"Content-Type": "application/json"})

    assert answer.status_code == 400


def test_pages_have_numbers_only_when_there_are_several(tenant: Client) -> None:
    for _ in range(4):
        tenant.service()
    whole = tenant.get("services")
    first = tenant.get("services", per_page=2, page=1)
    last = tenant.get("services", per_page=2, page=3)

    assert "metadata" not in whole
    assert len(whole["services"]) == 5
    assert first["metadata"] == {"per_page": 2, "total_entries": 5, "total_pages": 3, "current_page": 1}
    assert len(last["services"]) == 1
    assert tenant.list("services", per_page=2, page=4) == []


def test_a_page_size_out_of_range_means_the_greatest(tenant: Client) -> None:
    for _ in range(3):
        tenant.service()

    assert len(tenant.list("services", per_page=0)) == len(tenant.list("services", per_page=501)) == 4


def test_a_small_page_can_be_forced_on_everybody(tenant: Client, control: ThreescaleControl) -> None:
    for _ in range(3):
        tenant.service()
    control.config(page_size=2)
    pages = [tenant.list("services", per_page=500, page=page) for page in (1, 2, 3)]

    assert [len(page) for page in pages] == [2, 2, 0]


def test_an_answer_that_the_client_has_is_not_sent_again(client: Client) -> None:
    made = client.service()
    tag = client.call("GET", f"services/{made['id']}").headers["ETag"]
    again = client.call("GET", f"services/{made['id']}", headers={"If-None-Match": tag})
    client.put(f"services/{made['id']}", description="other")

    assert (again.status_code, again.content) == (304, b"")
    changed = client.call("GET", f"services/{made['id']}", headers={"If-None-Match": tag})
    assert changed.status_code == 200


def test_ids_of_different_kinds_never_coincide(client: Client) -> None:
    service = client.service()
    metric = client.hits(f"services/{service['id']}")

    assert client.refused("GET", f"services/{metric['id']}") == NOT_FOUND
