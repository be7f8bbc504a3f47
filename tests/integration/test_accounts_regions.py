"""Opt-in regions, service quotas and closing, end to end: one account from nothing to Ready, and to its end."""

from __future__ import annotations

import json

import pytest
from accounts_lab import POOL, Lab, laboratory
from product import process

from domain.accounts import ACCOUNT, ACCOUNT_CLAIM, ACCOUNT_POOL
from domain.accounts.constants import OPERATOR_NAMESPACE
from domain.accounts.quota_codes import SERVICE_OF
from domain.accounts.resources import Account
from localcloud.aws.contract import DEFAULT_REGIONS
from localcloud.deployment import Deployment

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

REGIONAL = [code for code, service in SERVICE_OF.items() if service != "iam"]
FEW, MANY = 2, 15  # quotas of a region
ROLES = "L-FE177D64"
OPTED = ("af-south-1", "eu-south-1")
LONGEST_HISTORY = 2000  # events that no workflow may have


def configured(regional: list[str]) -> dict[str, str]:
    """The keys of the ConfigMap."""
    quotas = {"servicequotas": {"default": dict.fromkeys(regional, "6000")}, "globalservicequotas": {ROLES: "5000"}}
    return {
        "feature.opt_in_regions": "true",
        "opt-in-regions": ", ".join((*OPTED, "mars-1")),
        "disabled-regions": OPTED[1],
        "accountpool": json.dumps({POOL: {"default": True, **quotas}}),  # JSON is YAML
        "feature.close_on_release": "true",
        "close_account.dry_run": "false",
    }


async def histories(lab: Lab, account: Account) -> list[int]:
    """Events of every run of the Account's lifecycle."""
    workflow_id = f"{account.key.kind}/{account.key.namespace}/{account.key.name}/{account.key.uid}"
    runs = [run.run_id async for run in lab.temporal.list_workflows(f"WorkflowId = '{workflow_id}'")]
    handles = [lab.temporal.get_workflow_handle(workflow_id, run_id=run) for run in runs]
    return [len((await handle.fetch_history()).events) for handle in handles]


def most_open(lab: Lab, account_id: str) -> int:
    """The most quota requests that the account had open at once."""
    requested = [request for request in lab.emulator.world().quota_requests if request.account == account_id]
    return max(sum(a.opened_at <= b.opened_at < a.done_at for a in requested) for b in requested)


@pytest.mark.parametrize("quotas", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
async def test_an_account_opts_in_has_its_quotas_raised_and_is_closed_at_its_release(
    deployment: Deployment, quotas: int
) -> None:
    regional = REGIONAL[:quotas]
    config = configured(regional)
    polls = {f"PERDURE_ACCOUNTS_{name}": "1" for name in ("CASE_POLL", "OPT_IN_POLL", "QUOTA_POLL")}
    async with laboratory(deployment) as lab, lab.configured(*config), process(deployment, "run", **polls):
        await lab.configure(config)
        lab.emulator.config(region_enable_seconds=2, quota_pending_seconds=0.5, quota_case_seconds=0.5)
        account = await ready(lab)
        everywhere = {region: set(codes) for region, codes in account.status.regional_service_quotas.items()}
        assert everywhere == {region: set(regional) for region in (*DEFAULT_REGIONS, OPTED[0])}
        found = [quota for codes in account.status.regional_service_quotas.values() for quota in codes.values()]
        found += account.status.global_service_quotas.values()
        assert {(quota.value, quota.status) for quota in found} == {(6000, "COMPLETED"), (5000, "COMPLETED")}
        assert {name: region.status for name, region in account.status.opt_in_regions.items()} == {OPTED[0]: "ENABLED"}
        assert most_open(lab, account.spec.aws_account_id) <= 20
        lengths = await histories(lab, account)
        assert quotas == FEW or len(lengths) > 1, "the looks are let go when a history is long enough"
        assert max(lengths) < LONGEST_HISTORY
        await closed(lab, account)


async def ready(lab: Lab) -> Account:
    manifest: dict[str, object] = {"metadata": {"name": POOL}, "spec": {"poolSize": 1}}
    await lab.ensure(ACCOUNT_POOL, OPERATOR_NAMESPACE, manifest)
    await lab.until("the account is Ready", lambda: bool(lab.free()), 200)
    await lab.change(ACCOUNT_POOL, OPERATOR_NAMESPACE, POOL, {"spec": {"poolSize": 0}})
    return lab.free()[0]


async def closed(lab: Lab, account: Account) -> None:
    """The claim that gets the account is released: the account is put off by AWS's limit at first, and then closed."""
    name = account.metadata.name
    await lab.ask("closes")
    assert (await lab.served("closes")).metadata.name == name
    lab.emulator.config(close_account_quota=0)
    await lab.kube.delete(ACCOUNT_CLAIM, "closes", "closes")
    limited = "aws.managed.openshift.io/close-rate-limited-until"
    await lab.until("the closing is put off", lambda: limited in lab.account(name).metadata.annotations)
    assert lab.account(name).metadata.annotations["aws.managed.openshift.io/close-backoff-seconds"] == "3600"
    assert lab.in_aws(account).status == "ACTIVE"
    assert lab.claim("closes") is not None
    lab.emulator.config(close_account_quota=10)
    await lab.annotate(account, limited, None)
    await lab.change(ACCOUNT_CLAIM, "closes", "closes", {"metadata": {"annotations": {"tried-again": "now"}}})
    await lab.until("the claim is gone", lambda: lab.claim("closes") is None)
    await lab.until("the Account is gone", lambda: lab.objects.one(ACCOUNT, OPERATOR_NAMESPACE, name) is None)
    assert lab.in_aws(account).status == "SUSPENDED"
    assert not await lab.has_secret("closes")
    await lab.kube.delete(ACCOUNT_POOL, OPERATOR_NAMESPACE, POOL)
