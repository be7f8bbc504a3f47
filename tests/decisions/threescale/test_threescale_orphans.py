"""Orphans look more and more seldom, at moments that every process finds again; and where tenants are found."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.threescale.orphan_backoff import next_look
from domain.threescale.provider_account import (
    Installation,
    NoAccount,
    ProviderAccount,
    SecretView,
    provider_account,
    same_tenant,
)

SINCE = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


def looks(seed: str, until: timedelta) -> list[timedelta]:
    """After how long each look comes."""
    found, now = [], SINCE
    while (now := next_look(SINCE, now, seed)) <= SINCE + until:
        found.append(now - SINCE)
    return found


@pytest.mark.parametrize("seed", ["a", "b", "a uid"])
def test_an_hour_has_eleven_to_thirteen_looks(seed: str) -> None:
    assert 11 <= len(looks(seed, timedelta(hours=1))) <= 13


def test_looks_double_from_five_seconds_to_ten_minutes() -> None:
    found = looks("uid", timedelta(hours=3))
    pauses = [(later - sooner).total_seconds() for sooner, later in zip([timedelta(0), *found], found, strict=False)]

    assert pauses == pytest.approx([5, 10, 20, 40, 80, 160, 320, *[600] * (len(pauses) - 7)], rel=0.21)
    assert found != looks("another", timedelta(hours=3))


@given(st.text(max_size=5), st.integers(min_value=0, max_value=30_000_000))
def test_a_restart_finds_the_same_looks(seed: str, seconds: int) -> None:
    now = SINCE + timedelta(seconds=seconds)
    following = next_look(SINCE, now, seed)

    assert now < following <= now + timedelta(minutes=12)
    assert next_look(SINCE, now + (following - now) / 2, seed) == following


OWN = SecretView(name="own", keys=("adminURL", "token"), admin_url="https://own.example.com", version="3")
DEFAULT = OWN.model_copy(update={"name": "threescale-provider-account", "admin_url": "https://default.example.com"})
SEED = SecretView(name="system-seed", keys=("ADMIN_ACCESS_TOKEN",))
LOCAL = Installation(tenant_name="shop", wildcard_domain="example.com")


@pytest.mark.parametrize(
    ("named", "secrets", "installation", "found"),
    [
        ("own", [OWN, DEFAULT], LOCAL, "https://own.example.com"),
        ("", [OWN, DEFAULT], LOCAL, "https://default.example.com"),
        ("", [OWN, SEED], LOCAL, "https://shop-admin.example.com"),
        ("own", [DEFAULT, SEED], LOCAL, "Secret/ns/own"),
        ("own", [OWN.model_copy(update={"keys": ("adminURL",)}), DEFAULT], None, "Secret/ns/own"),
        ("", [DEFAULT.model_copy(update={"keys": ("token",)}), SEED], LOCAL, "Secret/ns/threescale-provider-account"),
        ("", [], None, "Secret/ns/threescale-provider-account"),
        ("", [SEED], None, "Secret/ns/threescale-provider-account"),
        ("", [], LOCAL, "Secret/ns/system-seed"),
    ],
)
def test_a_tenant_is_found_here(
    named: str, secrets: list[SecretView], installation: Installation | None, found: str
) -> None:
    answer = provider_account("ns", named, {each.name: each for each in secrets}, installation)

    assert (answer.url if isinstance(answer, ProviderAccount) else answer.waits_for) == found
    assert isinstance(answer, NoAccount) is found.startswith("Secret/")


@pytest.mark.parametrize(
    ("named", "secrets", "why"),
    [
        ("", [], "LookupProviderAccount: no provider account found"),
        ("own", [DEFAULT], "LookupProviderAccount: Secret own not found"),
        (
            "",
            [DEFAULT.model_copy(update={"keys": ("adminURL",)})],
            "LookupProviderAccount: Secret threescale-provider-account has no token",
        ),
    ],
)
def test_a_tenant_that_is_not_found_is_reported_in_the_known_words(
    named: str, secrets: list[SecretView], why: str
) -> None:
    answer = provider_account("ns", named, {each.name: each for each in secrets})

    assert isinstance(answer, NoAccount)
    assert answer.why == why
    assert answer.incomplete is ("has no" in why)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://x.example.com", "https://X.example.com:443/", True),
        ("https://x.example.com", "http://x.example.com", False),
        ("https://x.example.com", "https://x.example.com:8443", False),
        ("https://x.example.com", None, False),
        ("", "", False),
        ("https://[broken", "https://[broken ", True),
        ("https://[broken", "https://x.example.com", False),
        ("https://x.example.com:port", "https://x.example.com", False),
    ],
)
def test_addresses_lead_to_one_tenant(one: str, other: str | None, same: bool) -> None:
    """3scale weakness 22: a slash behind an address makes it another tenant's."""
    assert same_tenant(one, other) is same
