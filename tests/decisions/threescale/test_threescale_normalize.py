"""What 3scale rewrites is recognised as the same, and what differs as different."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.schema import Json
from domain.threescale import normalize
from domain.threescale.policy_chain import same_chain
from domain.threescale.resources import Policy
from localcloud.threescale import addresses
from localcloud.threescale.resources.backend_usages import normal_path
from localcloud.threescale.resources.pricing_rules import as_price


@pytest.mark.parametrize(
    ("wanted", "found", "same"),
    [
        ("https://api.example.com", "https://api.example.com:443", True),
        ("http://api.example.com", "http://api.example.com:80", True),
        ("wss://api.example.com/x/y", "wss://api.example.com:443/x/y", True),
        ("https://api.example.com:8443", "https://api.example.com:443", False),
        ("https://api.example.com", "http://api.example.com:80", False),
        ("https://api.example.com/a", "https://api.example.com:443/b", False),
        (None, "https://api.example.com:443", True),
        ("https://api.example.com", None, False),
        ("not an address", "not an address", True),
        ("https://[", "https://[", True),
    ],
)
def test_addresses_are_the_same_with_and_without_their_port(wanted: str | None, found: str | None, same: bool) -> None:
    assert normalize.same_address(wanted, found) is same


@pytest.mark.parametrize(
    ("wanted", "found", "same"), [("v1", "/v1", True), ("/v1/", "/v1", True), ("", "/", True), ("/v1", "/v2", False)]
)
def test_paths_are_the_same_with_and_without_their_slashes(wanted: str, found: str, same: bool) -> None:
    assert normalize.same_path(wanted, found) is same


@pytest.mark.parametrize(
    ("wanted", "found", "same"),
    [
        ("20", "20.0", True),
        ("20", 20.0, True),
        ("20.00", 20, True),
        ("15.40", "15.4", True),
        ("15.45", 15.45, True),
        ("20", "20.01", False),
        ("20", None, False),
        (None, 5.0, True),
    ],
)
def test_money_is_compared_as_money(wanted: str | None, found: Json, same: bool) -> None:
    assert normalize.same_money(wanted, found) is same


def test_a_text_that_is_empty_may_come_back_as_nothing() -> None:
    assert normalize.same_text("", None)
    assert normalize.same_text(None, "anything")
    assert not normalize.same_text("x", None)


def test_a_backends_metric_loses_its_own_id_only() -> None:
    assert normalize.bare_name("hits.42", 42) == "hits"
    assert normalize.bare_name("v1.2.42", 42) == "v1.2"
    assert normalize.bare_name("hits.7", 42) == "hits.7"


def policy(name: str, **more: object) -> Policy:
    return Policy.model_validate({"name": name, "version": "builtin", "enabled": True, **more})


APICAST: dict[str, Json] = {"name": "apicast", "version": "builtin", "configuration": {}, "enabled": True}
CORS: dict[str, Json] = {"name": "cors", "version": "builtin", "configuration": {"a": 1}, "enabled": True}


@pytest.mark.parametrize(
    ("wanted", "found", "same"),
    [
        ([policy("cors", configuration={"a": 1})], [CORS, APICAST], True),
        ([policy("cors", configuration={"a": 1}), policy("apicast")], [CORS, APICAST], True),
        ([policy("apicast"), policy("cors", configuration={"a": 1})], [CORS, APICAST], False),
        ([policy("cors", configuration={"a": 2})], [CORS, APICAST], False),
        ([policy("cors", configuration={"a": True})], [CORS, APICAST], False),
        (
            [policy("cors", configuration={"b": {}, "a": 1})],
            [{**CORS, "configuration": {"a": 1, "b": {}}}, APICAST],
            True,
        ),
        ([policy("cors", configuration={"a": 1}, enabled=False)], [CORS, APICAST], False),
        ([], [{**APICAST, "errors": []}], True),
    ],
)
def test_chains_are_the_same_in_the_same_order(wanted: list[Policy], found: list[dict[str, Json]], same: bool) -> None:
    assert same_chain(wanted, found) is same


@given(st.from_regex(r"\A(https?|wss?)://[a-z]{1,8}(:[1-9][0-9]{0,3})?(/[a-z/]{0,8})?\Z"))
def test_an_address_is_the_same_as_what_the_simulator_keeps_of_it(address: str) -> None:
    remaining = addresses.with_port(address)

    assert normalize.same_address(address, remaining)
    assert normalize.with_port(remaining) == remaining


@given(st.text(alphabet="ab/", max_size=8))
def test_a_path_is_the_same_as_what_the_simulator_keeps_of_it(path: str) -> None:
    assert normalize.same_path(path, normal_path(path))


@given(st.from_regex(r"\A[0-9]{1,6}(\.[0-9]{2})?\Z"))
def test_a_price_is_the_same_as_what_the_simulator_writes_of_it(price: str) -> None:
    assert normalize.same_money(price, as_price(Decimal(price)))
