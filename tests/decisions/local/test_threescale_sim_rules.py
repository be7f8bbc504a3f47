"""The rules of the simulated 3scale that need no server: what it rewrites, what it takes, how it looks."""

from __future__ import annotations

from decimal import Decimal
from xml.etree import ElementTree

import pytest

from localcloud.threescale import addresses, answers, names, parameters
from localcloud.threescale.answers import Answer, Format, Page
from localcloud.threescale.contract import Call, CallCount, Fault, FaultKind, Ledger
from localcloud.threescale.faults import FaultBoard, refusal_of
from localcloud.threescale.ledger import ledger_book
from localcloud.threescale.refusals import Complaints, Refused, transition
from localcloud.threescale.resources import routes
from localcloud.threescale.resources.backend_usages import normal_path
from localcloud.threescale.resources.mapping_rules import is_pattern
from localcloud.threescale.resources.pricing_rules import as_price

# What clients of 3scale call, as its documentation has it.
ENDPOINTS = """
GET POST /admin/api/services
GET PUT DELETE /admin/api/services/{}
GET POST /admin/api/services/{}/metrics
GET PUT DELETE /admin/api/services/{}/metrics/{}
GET POST /admin/api/services/{}/metrics/{}/methods
GET PUT DELETE /admin/api/services/{}/metrics/{}/methods/{}
GET POST /admin/api/services/{}/proxy/mapping_rules
GET PATCH PUT DELETE /admin/api/services/{}/proxy/mapping_rules/{}
GET PATCH PUT /admin/api/services/{}/proxy
POST /admin/api/services/{}/proxy/deploy
GET /admin/api/services/{}/proxy/configs/{}
GET /admin/api/services/{}/proxy/configs/{}/{}
POST /admin/api/services/{}/proxy/configs/{}/{}/promote
GET PUT /admin/api/services/{}/proxy/policies
GET PATCH /admin/api/services/{}/proxy/oidc_configuration
GET POST /admin/api/services/{}/backend_usages
GET PUT DELETE /admin/api/services/{}/backend_usages/{}
GET POST /admin/api/services/{}/application_plans
GET PUT DELETE /admin/api/services/{}/application_plans/{}
PUT /admin/api/services/{}/application_plans/{}/default
GET /admin/api/application_plans
GET /admin/api/application_plans/{}/limits
GET POST /admin/api/application_plans/{}/metrics/{}/limits
GET PUT DELETE /admin/api/application_plans/{}/metrics/{}/limits/{}
GET /admin/api/application_plans/{}/pricing_rules
GET POST /admin/api/application_plans/{}/metrics/{}/pricing_rules
DELETE /admin/api/application_plans/{}/metrics/{}/pricing_rules/{}
GET POST /admin/api/backend_apis
GET PUT DELETE /admin/api/backend_apis/{}
GET POST /admin/api/backend_apis/{}/metrics
GET PUT DELETE /admin/api/backend_apis/{}/metrics/{}
GET POST /admin/api/backend_apis/{}/metrics/{}/methods
GET PUT DELETE /admin/api/backend_apis/{}/metrics/{}/methods/{}
GET POST /admin/api/backend_apis/{}/mapping_rules
GET PUT DELETE /admin/api/backend_apis/{}/mapping_rules/{}
GET /admin/api/accounts
GET PUT DELETE /admin/api/accounts/{}
GET /admin/api/accounts/find
PUT /admin/api/accounts/{}/approve
PUT /admin/api/accounts/{}/reject
PUT /admin/api/accounts/{}/make_pending
POST /admin/api/signup
GET POST /admin/api/accounts/{}/users
GET PUT DELETE /admin/api/accounts/{}/users/{}
PUT /admin/api/accounts/{}/users/{}/activate
PUT /admin/api/accounts/{}/users/{}/admin
PUT /admin/api/accounts/{}/users/{}/member
PUT /admin/api/accounts/{}/users/{}/suspend
PUT /admin/api/accounts/{}/users/{}/unsuspend
GET POST /admin/api/accounts/{}/applications
GET PUT DELETE /admin/api/accounts/{}/applications/{}
PUT /admin/api/accounts/{}/applications/{}/change_plan
PUT /admin/api/accounts/{}/applications/{}/suspend
PUT /admin/api/accounts/{}/applications/{}/resume
PUT /admin/api/accounts/{}/applications/{}/accept
GET POST /admin/api/accounts/{}/applications/{}/keys
DELETE /admin/api/accounts/{}/applications/{}/keys/{}
GET /admin/api/applications
GET /admin/api/applications/find
GET POST /admin/api/accounts/{}/service_subscriptions
GET POST /admin/api/active_docs
GET PUT DELETE /admin/api/active_docs/{}
GET POST /admin/api/registry/policies
GET PUT DELETE /admin/api/registry/policies/{}
GET /admin/api/account/proxy_configs/{}
GET /admin/api/objects/status
GET POST /admin/api/services/{}/service_plans
GET /admin/api/service_plans
GET POST /admin/api/account_plans
GET PUT DELETE /admin/api/account_plans/{}
GET POST /admin/api/services/{}/features
GET POST /admin/api/fields_definitions
GET POST /admin/api/personal/access_tokens
GET DELETE /admin/api/personal/access_tokens/{}
GET PUT /admin/api/provider
GET POST /admin/api/users
POST /master/api/providers
GET PUT DELETE /master/api/providers/{}
"""


@pytest.mark.parametrize("line", ENDPOINTS.split("\n")[1:-1])
def test_every_documented_endpoint_has_a_route(line: str) -> None:
    *methods, path = line.split()
    served = {
        method
        for route in routes()
        if [segment if not segment.startswith("{") else "{}" for segment in route.name.split("/")] == path.split("/")
        for method in route.methods
    }

    assert set(methods) <= served


def test_no_route_is_declared_twice() -> None:
    declared = [(method, route.path) for route in routes() for method in route.methods]

    assert len(declared) == len(set(declared))


@pytest.mark.parametrize(
    ("sent", "retained"),
    [
        ("https://api.example.com", "https://api.example.com:443"),
        ("http://api.example.com", "http://api.example.com:80"),
        ("ws://api.example.com", "ws://api.example.com:80"),
        ("wss://api.example.com/v1?a=b", "wss://api.example.com:443/v1?a=b"),
        ("https://api.example.com:8443/v1", "https://api.example.com:8443/v1"),
        ("https://[::2]/x", "https://[::2]:443/x"),
    ],
)
def test_an_address_is_stored_with_its_port(sent: str, retained: str) -> None:
    assert addresses.with_port(sent) == retained
    assert addresses.with_port(retained) == retained


@pytest.mark.parametrize(
    ("sent", "retained"), [("", "/"), ("/", "/"), ("v1", "/v1"), ("/v1/", "/v1"), ("//a/b//", "/a/b")]
)
def test_a_path_begins_with_a_slash_and_ends_with_none(sent: str, retained: str) -> None:
    assert normal_path(sent) == retained


@pytest.mark.parametrize(
    ("cost", "text"), [("20", "20.0"), ("20.00", "20.0"), ("15.40", "15.4"), ("0.0001", "0.0001"), ("1E+2", "100.0")]
)
def test_a_price_has_no_needless_zeros_but_one(cost: str, text: str) -> None:
    assert as_price(Decimal(cost)) == text


@pytest.mark.parametrize("pattern", ["/", "/$", "/a/{id}/b", "/a.{format}$", "/a?x={y}", "/a$?x={y}&z=1", "/{a-b}"])
def test_a_pattern_is_a_path_with_variables(pattern: str) -> None:
    assert is_pattern(pattern)


@pytest.mark.parametrize("pattern", ["", "a", "/a$b", "/a b", "/{", "/{}", "/a?{x}=1", "/a?", "/a?x", "/a$$"])
def test_a_malformed_pattern_is_refused(pattern: str) -> None:
    assert not is_pattern(pattern)


@pytest.mark.parametrize(
    ("name", "system_name"), [("My API", "my_api"), ("Ünïcode  2!", "unicode_2"), ("a-b", "a_b"), ("!!", "")]
)
def test_a_system_name_is_made_of_the_name(name: str, system_name: str) -> None:
    assert names.system_name_of(parameters.Parameters({"name": name})) == system_name


def test_names_in_brackets_nest() -> None:
    pairs = [
        ("a", "1"),
        ("service[name]", "API"),
        ("service[annotations][managed_by]", "x"),
        ("s[]", "1"),
        ("s[]", "2"),
    ]

    assert parameters.nested(pairs) == {
        "a": "1",
        "service": {"name": "API", "annotations": {"managed_by": "x"}},
        "s": ["1", "2"],
    }


def test_wrapped_values_win_over_flat_ones() -> None:
    sent = parameters.Parameters({"name": "flat", "other": 1, "service": {"name": "wrapped"}}).within("service")

    assert (sent.text("name"), sent.integer("other")) == ("wrapped", 1)


@pytest.mark.parametrize(
    ("sent", "flag"),
    [("true", True), ("1", True), (True, True), ("false", False), ("0", False), ("", False), (None, False)],
)
def test_booleans_come_in_many_ways(sent: str | bool | None, flag: bool) -> None:
    assert parameters.as_flag(sent) is flag


@pytest.mark.parametrize(
    ("sent", "number"), [("5", 5), (5, 5), (5.0, 5), ("5.5", None), ("x", None), (True, None), ("nan", None)]
)
def test_numbers_come_as_text_too(sent: object, number: int | None) -> None:
    assert parameters.as_integer(sent) == number  # type: ignore[arg-type]


def test_an_annotation_that_comes_empty_is_taken_away() -> None:
    sent = parameters.Parameters({"annotations": {"managed_by": "", "other": 1}})

    assert sent.annotations({"managed_by": "operator", "kept": "x"}) == {"kept": "x", "other": "1"}


def test_xml_carries_the_numbers_of_a_page_and_no_links() -> None:
    body = answers.collection("services", "service", [{"id": 1, "links": [], "on": True, "none": None}], Page(2, 1, 3))
    root = ElementTree.fromstring(answers.as_xml(body.body))

    assert root.attrib == {"per_page": "1", "total_entries": "3", "total_pages": "3", "current_page": "2"}
    assert [(each.tag, each.text) for each in root[0]] == [("id", "1"), ("on", "true"), ("none", None)]


def test_a_missing_object_is_empty_in_xml() -> None:
    assert answers.as_xml({"status": "Not found"}) == b""
    assert answers.as_xml({"error": "Access denied"}).endswith(b"<error>Access denied</error>")


def test_errors_in_xml_name_their_field_unless_it_is_base() -> None:
    body = answers.as_xml({"errors": {"system_name": ["is invalid"], "base": ["Limit reached"]}})

    assert [each.text for each in ElementTree.fromstring(body)] == ["System name is invalid", "Limit reached"]


def test_a_refused_transition_has_one_object_under_error() -> None:
    refused = transition("activate", "active", {"user": {"id": 1}}).answer

    assert refused.status == 422
    assert refused.body == {
        "error": {
            "from": "active",
            "event": "activate",
            "error": 'State cannot transition via "activate"',
            "object": {"user": {"id": 1}},
        }
    }


def test_complaints_are_reported_together_and_nothing_without_any() -> None:
    complaints = Complaints()
    complaints.settle()
    complaints.if_blank({"name": " "}, "name", "other")
    complaints.add("name", "is invalid")
    with pytest.raises(Refused) as refused:
        complaints.settle()

    assert refused.value.answer.body == {
        "errors": {"name": ["can't be blank", "is invalid"], "other": ["can't be blank"]}
    }


def strikes(
    board: FaultBoard, tenant: str = "a", method: str = "GET", path: str = "/x", body: bytes = b""
) -> str | None:
    fault = board.strike(tenant, method, path, "", body)
    return fault.id if fault else None


def test_a_fault_strikes_only_what_it_names() -> None:
    board = FaultBoard()
    board.add(Fault(id="f", tenant="a", method="P*", path="/services$", containing="doomed"))
    hit = {"tenant": "a", "method": "POST", "path": "/admin/services", "body": b"is doomed"}

    assert strikes(board, **hit) == "f"  # type: ignore[arg-type]
    for other in ({"tenant": "b"}, {"method": "GET"}, {"path": "/services/1"}, {"body": b"fine"}):
        assert strikes(board, **{**hit, **other}) is None  # type: ignore[arg-type]


def test_a_fault_passes_some_calls_and_takes_some() -> None:
    board = FaultBoard()
    board.add(Fault(id="f", skip=2, count=2))

    assert [strikes(board) for _ in range(6)] == [None, None, "f", "f", None, None]
    (reported,) = board.report()
    assert (reported.hits, reported.count, reported.skip) == (2, 0, 0)


def test_restored_faults_go_on_where_they_stood() -> None:
    board, later = FaultBoard(), FaultBoard()
    board.add(Fault(count=2))
    strikes(board)
    later.restore(board.report())

    assert [strikes(later) is not None for _ in range(2)] == [True, False]
    assert later.add(Fault()).id != later.report()[0].id


def test_a_refusal_may_say_anything() -> None:
    answer = refusal_of(Fault(kind=FaultKind.REFUSE, status=502, body="gone", headers={"Retry-After": "1"}))

    assert (answer.status, answer.rendered(Format.JSON)[1], answer.headers) == (502, b"gone", {"Retry-After": "1"})
    assert isinstance(refusal_of(Fault(status=418)), Answer)


def test_a_ledger_groups_and_forgets() -> None:
    book = ledger_book(recent=1)
    call = Call(at=0, seconds=0, tenant="a", method="GET", route="/r", path="/r", query="", status=200, mutating=False)
    book.enter(call)
    book.enter(call.model_copy(update={"status": 0, "tenant": "b"}))
    report = book.report(recent=True)

    assert [(each.tenant, each.count, each.lost) for each in report.counts] == [("a", 1, 0), ("b", 1, 1)]
    assert len(report.recent) == 1
    book.reset()
    assert book.report(recent=True).calls() == 0


def test_a_ledger_is_asked_by_method_route_and_tenant() -> None:
    def count(tenant: str, method: str, mutating: bool, number: int) -> CallCount:
        return CallCount(tenant=tenant, method=method, route="/r", mutating=mutating, count=number, errors=0, lost=0)

    ledger = Ledger(
        since=0, counts=(count("a", "GET", False, 3), count("a", "PUT", True, 2), count("b", "PUT", True, 1))
    )

    assert (ledger.calls(), ledger.calls("PUT"), ledger.calls(route="/other"), ledger.calls(tenant="a")) == (6, 3, 0, 5)
    assert (ledger.mutating(), ledger.mutating("b"), ledger.reading("a")) == (3, 1, 3)
    assert ledger.by_route() == {"GET /r": 3, "PUT /r": 3}
