"""What 3scale's refusals mean, and how they are reported to people."""

from __future__ import annotations

from datetime import timedelta

import httpx
import pytest

from activities.threescale.call_limits import Guard
from activities.threescale.client import Tenant
from activities.threescale.errors import no_answer, refusal, unreadable
from domain.refusal import ErrorType
from domain.threescale.calls import Resource, read_entry
from engine.errors import Unavailable

CALL = "3scale DELETE services/5 at https://x.example.com"
PAGE = "<html><body>Bad Gateway</body></html>"


@pytest.mark.parametrize(
    ("status", "body", "type_", "message"),
    [
        (
            422,
            '{"errors": {"name": ["is invalid", "short"], "base": ["no"]}}',
            "Invalid",
            "no; name: is invalid",
        ),
        (422, '{"error": {"from": "live", "event": "resume", "error": "cannot"}}', "Invalid", "from live by resume"),
        (400, "Required parameter missing: name", "Invalid", "Required parameter missing: name"),
        (403, '{"error": "Access denied"}', "Denied", "Check the token in the tenant's Secret"),
        (403, '{"errors": {"base": ["Can\'t delete last admin"]}}', "Denied", "Can't delete last admin"),
        (403, "", "Denied", "no message"),
        (404, '{"status": "Not found"}', "Absent", "Not found"),
        (404, PAGE, "Unavailable", "no message"),
        (409, "", "Conflict", "no message"),
        (429, PAGE, "Throttled", "no message"),
        (408, "", "Unavailable", "no message"),
        (502, PAGE, "Unavailable", "no message"),
        (302, "", "Unavailable", "no message"),
    ],
)
def test_an_answer_means_this_and_is_reported_so(status: int, body: str, type_: str, message: str) -> None:
    error = refusal(CALL, status, body, {})

    assert error.type is ErrorType(type_)
    assert message in error.message
    assert error.message.startswith(f"3scale DELETE services/5 at https://x.example.com: {status}")


def test_a_refused_deletion_is_no_matter_of_the_token() -> None:
    assert "token" not in refusal(CALL, 403, '{"errors": {"base": ["used"]}}', {}).message


def test_the_requested_delay_is_respected() -> None:
    assert refusal(CALL, 429, "", {"retry-after": "7"}).delay == timedelta(seconds=7)
    assert refusal(CALL, 503, "", {"retry-after": "soon"}).delay is None
    assert refusal(CALL, 422, "{}", {"retry-after": "7"}).delay is None


def test_missing_and_unreadable_answers_pass_by_themselves() -> None:
    assert no_answer(CALL, TimeoutError()).type is ErrorType.UNAVAILABLE
    assert "TimeoutError" in no_answer(CALL, TimeoutError()).message
    assert unreadable(CALL, PAGE).type is ErrorType.UNAVAILABLE
    assert "html" not in unreadable(CALL, PAGE).message


def test_long_words_are_shortened() -> None:
    assert len(refusal(CALL, 422, "x" * 5000, {}).message) < 700


@pytest.mark.parametrize("body", ["", "null"])
@pytest.mark.parametrize("id_", [0, 7], ids=["list", "one entry"])
async def test_a_read_answered_without_content_does_not_count_as_absence(body: str, id_: int) -> None:
    """Otherwise an Application would be created again."""
    transport = httpx.MockTransport(lambda _: httpx.Response(200, text=body))
    async with httpx.AsyncClient(transport=transport) as http:
        tenant = Tenant(http, "https://x.example.com", "token", Guard("x", 1))
        with pytest.raises(Unavailable, match="no JSON object or list"):
            await tenant.read(read_entry(Resource.APPLICATION, "accounts/1/applications", id_))


@pytest.mark.parametrize("url", ["https://xn--", "https://x:port", "example.com"])
async def test_an_address_that_is_none_gives_no_answer(url: str) -> None:
    async with httpx.AsyncClient() as http:
        with pytest.raises(Unavailable, match="no answer"):
            await Tenant(http, url, "token", Guard("x", 1)).read(read_entry(Resource.ACCOUNT, "accounts", 7))
