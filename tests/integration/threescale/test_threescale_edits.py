"""What Perdure's rules for 3scale hold to be the fewest calls and the same, tried on the simulator."""

from __future__ import annotations

import random
from typing import Any

import pytest
from threescale_process import Client

from domain.threescale import normalize
from domain.threescale.mapping_rules import FoundRule, Rule, edits
from localcloud.threescale.control import ThreescaleControl

pytestmark = pytest.mark.integration


def found_in(client: Client, own: str) -> tuple[FoundRule, ...]:
    return tuple(
        FoundRule(id=each["id"], rule=Rule.model_validate(each)) for each in client.list(f"{own}/mapping_rules")
    )


def bring(client: Client, own: str, wanted: list[Rule]) -> int:
    """Carry out what it takes, and say how many calls that were."""
    made = edits(wanted, found_in(client, own))
    for edit in made:
        body: dict[str, Any] = edit.rule.model_dump() if edit.rule else {}
        body |= {"position": edit.position} if edit.position else {}
        where = f"{own}/mapping_rules" + (f"/{edit.id}" if edit.id else "")
        answer = client.call(edit.call, where, body or None)
        assert answer.status_code in (200, 201), answer.text
    return len(made)


def test_rules_come_into_any_order_with_the_calls_that_were_foreseen(client: Client) -> None:
    service = client.service()
    own = f"services/{service['id']}/proxy"
    hits = client.hits(f"services/{service['id']}")["id"]
    rules = [Rule(http_method="GET", pattern=f"/{name}", metric_id=hits, delta=1) for name in "abcdefghij"]
    assert bring(client, own, rules) == 10  # the rule that came with the product becomes the first
    dice = random.Random(3)
    for _ in range(5):
        wanted = dice.sample(rules, dice.randint(0, 10))
        bring(client, own, wanted)
        listed = found_in(client, own)
        assert [each.rule for each in listed] == wanted
        positions = [each["position"] for each in client.list(f"{own}/mapping_rules")]
        assert positions == list(range(1, len(wanted) + 1))


def test_a_rule_inserted_first_among_ten_is_one_call(client: Client, control: ThreescaleControl) -> None:
    service = client.service()
    own = f"services/{service['id']}/proxy"
    hits = client.hits(f"services/{service['id']}")["id"]
    rules = [Rule(http_method="GET", pattern=f"/{name}", metric_id=hits, delta=1) for name in "abcdefghij"]
    bring(client, own, rules)
    control.reset_ledger()
    bring(client, own, [Rule(http_method="POST", pattern="/new", metric_id=hits, delta=2), *rules])

    assert control.ledger().mutating() == 1
    assert [each.rule.pattern for each in found_in(client, own)][:2] == ["/new", "/a"]


@pytest.mark.parametrize(
    "address", ["https://api.example.com", "http://api.example.com/a/b", "wss://api.example.com:99"]
)
def test_an_address_that_was_sent_is_recognised(client: Client, address: str) -> None:
    made = client.backend(private_endpoint=address)

    assert normalize.same_address(address, made["private_endpoint"])
    again = client.put(f"backend_apis/{made['id']}", private_endpoint=address)
    assert again["private_endpoint"] == made["private_endpoint"] == normalize.with_port(address)


@pytest.mark.parametrize("price", ["20", "20.00", "15.40", "15.45", "0"])
def test_a_price_that_was_sent_is_recognised(client: Client, price: str) -> None:
    service = client.service()
    plan = client.plan(service, setup_fee=price)
    hits = client.hits(f"services/{service['id']}")
    made = client.post(
        f"application_plans/{plan['id']}/metrics/{hits['id']}/pricing_rules", min=1, max=2, cost_per_unit=price
    )

    assert normalize.same_money(price, made["cost_per_unit"])
    assert normalize.same_money(price, plan["setup_fee"])
    assert not normalize.same_money("7", made["cost_per_unit"])
