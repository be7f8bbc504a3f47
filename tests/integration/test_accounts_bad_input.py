"""Bad input end to end: the object concerned reports the error and heals when it is corrected; no other is delayed.

All good claims here are of one legal entity, so that one account serves them one after another.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from accounts_lab import CREDENTIALS, POOL, REGION, Lab, laboratory, product

from domain.accounts import ACCOUNT, ACCOUNT_CLAIM, ACCOUNT_POOL
from domain.accounts.constants import CONFIG_MAP as CONFIG_MAP_NAME
from domain.accounts.constants import OPERATOR_NAMESPACE
from domain.resource import Condition, condition_of
from engine.errors import Invalid
from engine.kube import CONFIG_MAP, NAMESPACE, SECRET
from engine.kube.json import JsonObject, mapping, text
from localcloud.deployment import Deployment

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

ENTITY = "careful"
NASTY = "a'\"; $(reboot) `x` ../../etc <b>&amp; 100% {{.}} é 漢"


@pytest.fixture(scope="module")
async def lab(deployment: Deployment) -> AsyncIterator[Lab]:
    """The product at work, one account of the careful entity, and one without a former claim."""
    async with laboratory(deployment) as found, product(deployment):
        await found.ensure_pool(1)
        await found.ask("careful", ENTITY)
        await found.served("careful")
        await found.release("careful")
        await found.ensure_pool(1)
        yield found
        await found.leave()


async def _serves_others(lab: Lab) -> None:
    """The careful entity gets its account, and gives it back."""
    async with lab.asked("bystander", ENTITY):
        await lab.served("bystander", seconds=60)


@pytest.mark.parametrize(
    ("field", "bad", "good", "reason"),
    [
        ("legalEntity", {"id": "", "name": "x"}, {"id": ENTITY, "name": "x"}, "LegalEntityIDMissing"),
        (
            "awsCredentialSecret",
            {"name": "", "namespace": "faulty"},
            {"name": CREDENTIALS, "namespace": "faulty"},
            "AWSSecretRefMissing",
        ),
        (
            "awsCredentialSecret",
            {"name": CREDENTIALS, "namespace": "kube-system"},
            {"name": CREDENTIALS, "namespace": "faulty"},
            "AWSSecretRefNamespaceMismatch",
        ),
    ],
)
async def test_a_faulty_claim_reports_its_fault_and_is_bound_when_corrected(
    lab: Lab, field: str, bad: JsonObject, good: JsonObject, reason: str
) -> None:
    async with lab.asked("faulty", ENTITY, **{field: bad}):
        await lab.until("it is in Error", lambda: lab.claim_state("faulty") == "Error")
        claim = lab.claim("faulty")
        assert claim is not None
        condition = condition_of(claim.status.conditions, "InvalidAccountClaim")
        assert condition is not None
        assert condition.reason == reason
        assert not claim.spec.account_link
        await lab.change(ACCOUNT_CLAIM, "faulty", "faulty", {"spec": {field: good}})
        await lab.served("faulty")


@pytest.mark.parametrize(
    "spec", [{"legalEntity": "acme"}, {"aws": {"regions": REGION}}, {"byoc": "yes"}, {"accountPool": 7}]
)
async def test_a_claim_of_wrong_types_is_refused_by_the_api_server(lab: Lab, spec: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        await lab.ask("mistyped", **spec)


async def test_nasty_names_and_tags_are_used_unchanged(lab: Lab) -> None:
    await lab.ensure_pool(1)
    async with lab.asked("nasty", NASTY, customTags=f"no equals sign\n=empty\nnasty={NASTY}\na=b=c"):
        account = await lab.served("nasty")
        unit = next(unit for unit in lab.emulator.world().units if unit.id == lab.in_aws(account).parent)
        assert unit.name == NASTY


async def test_a_claim_leaves_a_secret_alone_that_it_did_not_make_and_says_so(lab: Lab) -> None:
    name, version = "strangers-secret", ("metadata", "resourceVersion")
    await lab.ensure_pool(1)
    await lab.ensure(NAMESPACE, "", {"metadata": {"name": name}})
    strangers: JsonObject = {"metadata": {"name": CREDENTIALS}, "stringData": {"password": "a stranger's"}}
    made = await lab.kube.create(SECRET, strangers, name)
    async with lab.asked(name, ENTITY):
        await lab.until(
            "it waits and says that the Secret is not its own",
            lambda: bool(
                (c := lab.claim(name))
                and c.status.state == "Pending"
                and condition_of(c.status.conditions, "SecretUnusable")
            ),
        )
    left = await lab.kube.get(SECRET, name, CREDENTIALS)
    assert text(left, *version) == text(made, *version)


@pytest.mark.complete
async def test_a_claim_names_the_secret_that_its_account_lacks(lab: Lab) -> None:
    account = next(a for a in lab.accounts() if a.spec.legal_entity.id == ENTITY)
    name = account.spec.iam_user_secret
    secret = await lab.kube.get(SECRET, OPERATOR_NAMESPACE, name)
    await lab.kube.delete(SECRET, OPERATOR_NAMESPACE, name)
    try:
        await lab.ask("keyless", ENTITY)
        await lab.until("it is there", lambda: lab.claim("keyless") is not None)
        await lab.says(ACCOUNT_CLAIM, "keyless", "keyless", name)
    finally:
        meta = {"name": name, "ownerReferences": mapping(secret, "metadata")["ownerReferences"]}
        remaining: JsonObject = {"metadata": meta, "type": "Opaque", "data": mapping(secret, "data")}
        await lab.kube.create(SECRET, remaining, OPERATOR_NAMESPACE)
    await lab.served("keyless")
    await lab.release("keyless")


@pytest.mark.complete
async def test_each_key_missing_in_the_config_map_is_named_by_the_objects_it_concerns(lab: Lab) -> None:
    """One key after another."""
    await lab.ensure_pool(1)
    name = lab.free()[0].metadata.name
    async with lab.configured("ami-owner", "support-jump-role", "root", "base", "account-limit", "accountpool") as keys:
        await lab.configure({"ami-owner": None})
        await lab.blank(lab.account(name))
        await lab.says(ACCOUNT, OPERATOR_NAMESPACE, name, "ami-owner")
        await _serves_others(lab)
        await lab.configure({"ami-owner": keys["ami-owner"], "support-jump-role": None})
        await lab.says(ACCOUNT, OPERATOR_NAMESPACE, name, "support-jump-role")
        await lab.configure({"support-jump-role": keys["support-jump-role"], "root": None})
        await lab.until("the account is Ready again", lambda: lab.account(name).status.state == "Ready")
        async with lab.asked("waiting", ENTITY):
            await lab.says(ACCOUNT_CLAIM, "waiting", "waiting", "root")
            await lab.configure({"root": keys["root"], "base": None})
            await lab.says(ACCOUNT_CLAIM, "waiting", "waiting", "base")
            await lab.configure({"base": keys["base"], "account-limit": None})
            await lab.served("waiting")
        await lab.organization_says("account-limit unreadable")
        await lab.change(ACCOUNT_POOL, OPERATOR_NAMESPACE, POOL, {"spec": {"poolSize": 2}})
        await _stalls(lab, "account-limit")
        await lab.configure({"account-limit": "many"})
        await _stalls(lab, "account-limit")
        await lab.configure({"account-limit": keys["account-limit"], "accountpool": None})
        await _stalls(lab, "accountpool")
        await lab.configure({"accountpool": "default: ["})
        await _stalls(lab, "accountpool")
        await _serves_others(lab)
    await lab.until("the pool is full", lambda: lab.available() == 2, 60)
    assert _stalled(lab) is None


async def _stalls(lab: Lab, word: str) -> None:
    await lab.until(f"the pool names {word}", lambda: word in (((found := _stalled(lab)) and found.message) or ""))


def _stalled(lab: Lab) -> Condition | None:
    return condition_of(lab.pool_conditions(), "Stalled")


async def test_without_a_config_map_accounts_wait_and_go_on_with_it(lab: Lab) -> None:
    await lab.ensure_pool(1)
    account = lab.free()[0]
    name = account.metadata.name
    async with lab.configured() as keys:
        await lab.kube.delete(CONFIG_MAP, OPERATOR_NAMESPACE, CONFIG_MAP_NAME)
        try:
            await lab.blank(account)
            await lab.says(ACCOUNT, OPERATOR_NAMESPACE, name, f"{CONFIG_MAP_NAME} does not exist")
        finally:
            remaining: JsonObject = {"metadata": {"name": CONFIG_MAP_NAME}, "data": keys}
            await lab.kube.create(CONFIG_MAP, remaining, OPERATOR_NAMESPACE)
    await lab.until("it is Ready again", lambda: lab.account(name).status.state == "Ready")


async def test_a_state_that_does_not_exist_is_named_and_left_by_blanking_it(lab: Lab) -> None:
    await lab.ensure_pool(1)
    account = lab.free()[0]
    name = account.metadata.name
    nonsense: JsonObject = {"status": {"state": "Nonsense"}}
    await lab.change(ACCOUNT, OPERATOR_NAMESPACE, name, nonsense, subresource="status")
    await lab.says(ACCOUNT, OPERATOR_NAMESPACE, name, "Nonsense")
    await lab.blank(account)
    await lab.until("it is Ready again", lambda: lab.account(name).status.state == "Ready")


@pytest.mark.complete
async def test_a_namespace_that_goes_takes_its_claim_along_and_frees_the_account(lab: Lab) -> None:
    await lab.ask("vanishing", ENTITY)
    account = await lab.served("vanishing")
    key = await lab.key("vanishing")
    await lab.kube.delete(NAMESPACE, "", "vanishing")
    await lab.until("the claim is gone", lambda: lab.claim("vanishing") is None)
    name = account.metadata.name
    await lab.until("its account is free", lambda: not lab.account(name).status.claimed)
    assert key.opens() == ""
