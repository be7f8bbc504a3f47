"""What OpenStack refuses, in our words: by its own shapes, as its API references have them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest

from activities.openstack.errors import Call, no_answer, refusal
from domain.loadbalancers.refused_calls import QUOTA
from engine.errors import LONGEST_ASKED, Absent, ApiError, Conflict, Denied, Invalid, Throttled, Unavailable

CALL = Call(api="neutron", object="port", operation="create", what="lbs/web", project="project shop")
ADDRESS = "https://me:topsecret@keystone.example:5000/v3"
QUOTA_TEXT = "Quota exceeded for instances: Requested 1, but already used 1 of 1 instances"


def neutron(type_: str, message: str = "it says why") -> dict[str, object]:
    return {"NeutronError": {"type": type_, "message": message, "detail": ""}}


def nova(kind: str, code: int, message: str = "it says why") -> dict[str, object]:
    return {kind: {"code": code, "message": message}}


@pytest.mark.parametrize(
    ("status", "body", "kind", "code"),
    [
        (404, neutron("PortNotFound"), Absent, "PortNotFound"),
        (404, nova("itemNotFound", 404), Absent, "itemNotFound"),
        (404, "<html>Not Found</html>", Unavailable, "UnreadableAnswer"),
        (404, {}, Unavailable, "UnreadableAnswer"),
        (409, neutron("OverQuota"), Throttled, QUOTA),
        (409, neutron("IpAddressGenerationFailure"), Throttled, "IpAddressGenerationFailure"),
        (409, neutron("SecurityGroupInUse"), Conflict, "SecurityGroupInUse"),
        (409, nova("conflictingRequest", 409), Conflict, "conflictingRequest"),
        (403, nova("forbidden", 403, QUOTA_TEXT), Throttled, QUOTA),
        (403, nova("forbidden", 403, "Quota exceeded, too many server groups."), Throttled, QUOTA),
        (403, neutron("PolicyNotAuthorized"), Denied, "PolicyNotAuthorized"),
        (413, nova("overLimit", 413), Throttled, "overLimit"),
        (429, nova("overLimit", 429), Throttled, "overLimit"),
        (401, {"error": {"code": 401, "title": "Unauthorized", "message": "no"}}, Denied, "Unauthorized"),
        (400, neutron("InvalidIpForSubnet"), Invalid, "InvalidIpForSubnet"),
        (400, nova("badRequest", 400), Invalid, "badRequest"),
        (302, "", Invalid, "HTTP 302"),
        (500, nova("computeFault", 500), Unavailable, "computeFault"),
        (503, "upstream is gone", Unavailable, "HTTP 503"),
        (408, "", Unavailable, "HTTP 408"),
    ],
)
def test_each_refusal_is_one_of_ours(status: int, body: object, kind: type[ApiError], code: str) -> None:
    error = refusal(CALL, status, body, {})
    assert (type(error), error.code) == (kind, code)


def test_a_message_names_the_call_the_object_and_the_request() -> None:
    error = refusal(CALL, 409, neutron("MacInUse"), {"x-openstack-request-id": "req-1"})
    assert error.message == ("neutron create port lbs/web in project shop: 409 MacInUse: it says why [request req-1]")


def test_user_data_that_nova_repeats_is_left_out() -> None:
    value = "QUJD" * 4000
    message = f"Invalid input for field/attribute user_data. Value: {value}. '{value}' is too long"
    error = refusal(CALL, 400, nova("badRequest", 400, message), {})
    assert "QUJD" not in error.message
    assert "user_data" in error.message


@pytest.mark.parametrize(
    ("status", "headers", "delay"),
    [
        (429, {"retry-after": "7"}, timedelta(seconds=7)),
        (429, {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        (429, {"retry-after": "86400"}, LONGEST_ASKED),
        (429, {"retry-after": "9" * 5000}, None),
        (503, {"retry-after": "3"}, timedelta(seconds=3)),
        (503, {}, None),
    ],
)
def test_a_requested_delay_is_respected(status: int, headers: Mapping[str, str], delay: timedelta | None) -> None:
    assert refusal(CALL, status, "", headers).delay == delay


def test_a_quota_is_not_asked_for_again_at_once() -> None:
    error = refusal(CALL, 409, neutron("OverQuota"), {})
    assert error.delay is not None
    assert error.delay >= timedelta(seconds=5)


def test_an_older_shape_of_neutrons_errors_is_read() -> None:
    error = refusal(CALL, 404, {"NeutronError": "no such port"}, {})
    assert isinstance(error, Absent)
    assert "no such port" in error.message


def test_no_answer_leaves_open_what_has_happened() -> None:
    error = no_answer(CALL, TimeoutError("read timed out"))
    assert isinstance(error, Unavailable)
    assert "finds out whether the call took effect" in error.message


def test_credentials_in_an_address_are_left_out() -> None:
    for error in (no_answer(CALL, OSError(ADDRESS)), refusal(CALL, 502, f"no route to {ADDRESS}", {})):
        assert "topsecret" not in error.message
        assert "keystone.example:5000" in error.message
