"""docs/conditions.md names every condition that the code writes, with its reasons, and no other.

`./run python tests/decisions/test_docs_conditions.py` writes the page anew: types and reasons as they are read off the
code, what they mean from here.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from said_conditions import said

from domain.accounts.federated.resources import RoleState
from domain.claims.conditions import HANDLE_STALLED, STALLED
from domain.claims.provider_conditions import PLAIN_TEXT, RENDERED, VARS_ARE_TEMPLATES
from domain.loadbalancers.balancer_conditions import BLOCKED, QUOTA_EXCEEDED, REFUSED
from domain.threescale.conditions import IN_SYNC

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "conditions.md"

TITLES = {
    "accounts": "AWS accounts",
    "claims": "Resource claims",
    "loadbalancers": "Load balancers",
    "agent": "What a load balancer's machine reports",
    "threescale": "3scale",
}
# By area and type: of which kinds, and what it says while it is True.
MEANINGS: dict[str, dict[str, tuple[str, str]]] = {
    "accounts": {
        "AccountClientError": ("Account", "AWS refuses what nothing but a person can mend; it is Failed"),
        "AccountCreationFailed": ("Account", "AWS made no account, or it could not be set up; it is Failed"),
        "AuthenticationError": ("Account of a customer", "the customer's key or role is refused; False once it works"),
        "AuthenticationFailed": ("AccountClaim", "the customer's Secret is missing, incomplete or refused"),
        "CCSAccountClaimFailed": ("AccountClaim", "the customer's account has failed"),
        "Claimed": ("Account, AccountClaim", "the two have each other"),
        "Creating": ("Account", "was being made"),
        "DeletionHeld": ("Account", "it is deleted only once the claim that holds it is released"),
        "Failed": ("Account, AWSFederatedAccountAccess", "is Failed; the message says why"),
        "InitializingRegions": ("Account", "its regions were being readied"),
        "InternalError": ("AccountClaim", "why the customer's account has failed"),
        "Invalid": ("AWSFederatedRole", "IAM refuses its policies, or there are none"),
        "InvalidAccountClaim": ("AccountClaim", "the claim contradicts itself; the message says where"),
        "InvalidConfigMap": ("Account, AccountClaim", "a key of the ConfigMap is missing or cannot be read"),
        "OptInRegionsEnabled": ("Account", "the regions to opt in to are enabled"),
        "OptInRegionsManualAction": ("Account", "regions that a person has to enable; it is Ready without them"),
        "OptingInRegions": ("Account", "regions were being opted in to"),
        "Pending": (
            "Account",
            "the limit of accounts (`account-limit`) was reached, or unreadable, when it was to be made",
        ),
        "PendingVerification": ("Account", "AWS Support was asked for its limits"),
        "Ready": ("Account, AWSFederatedAccountAccess", "became Ready"),
        "ReleaseBlocked": ("AccountClaim", "it cannot be released yet; the message says what is in the way"),
        "Reused": ("Account", "was released by a claim, and is kept for the same legal entity"),
        "ServiceQuotasManualAction": ("Account", "quotas that a person has to raise; it is Ready without them"),
        "SecretUnusable": (
            "AccountClaim",
            "the Secret that the claim names is another's; it is neither changed nor deleted",
        ),
        "Stalled": ("AccountPool", "makes no accounts: limit, budget, pause or a fault in the ConfigMap"),
        "Synced": ("AWSFederatedAccountAccess", "False: the last renewal was refused; what was granted stays"),
        "Unclaimed": ("AccountClaim", "waits for an account"),
        "Valid": ("AWSFederatedRole", "IAM has accepted its policies"),
    },
    "claims": {
        "Stalled": (
            "ResourceClaim, ResourceHandle, ResourcePool",
            "a person has to mend something: the reason says what",
        ),
        "VarsAreTemplates": (
            "ResourceProvider",
            "a variable is a template, which Poolboy 1.12 and later releases treat differently",
        ),
    },
    "loadbalancers": {
        "HasKeepalivedMaster": ("LoadBalancerSet", "one of its machines holds the virtual address"),
        "MarkedForDeletion": ("LoadBalancerMachine", "it is being given up, and replaced two minutes later"),
        "Stalled": ("LoadBalancer", "OpenStack refuses what it needs; the message names the field and the object"),
        "perdure.dev/Misconfigured": ("Service", "what it asks for in vain"),
    },
    "agent": {
        "ConfigReady": ("LoadBalancerMachine", "Envoy's configuration could be made"),
        "EnvoyReady": ("LoadBalancerMachine", "Envoy answers"),
        "EnvoyUpToDate": ("LoadBalancerMachine", "Envoy has the configuration"),
        "KeepalivedMaster": ("LoadBalancerMachine", "it holds the virtual address"),
        "KeepalivedProcess": ("LoadBalancerMachine", "keepalived runs"),
        "KeepalivedStatsFile": ("LoadBalancerMachine", "keepalived reports"),
    },
    "threescale": {
        "Failed": ("all kinds", "3scale refuses it, or it waits; tried again"),
        "InSync": ("all kinds", "it is being synchronised, and that lasts"),
        "Invalid": ("all kinds", "its spec is at fault; a change lifts it"),
        "Orphan": ("all kinds", "something that it refers to is missing"),
        "Ready": ("all but Product and Backend", "3scale has it as it is wanted"),
        "Synced": ("Product, Backend", "3scale has it as it is wanted"),
        "Waiting": ("DeveloperAccount", "waits for its first user"),
    },
}
# What is not read off calls: written through a variable.
BESIDE = {
    "accounts": {(RoleState.VALID, ""), (RoleState.INVALID, "")},
    "claims": {
        (STALLED, HANDLE_STALLED),
        (VARS_ARE_TEMPLATES, RENDERED),
        (VARS_ARE_TEMPLATES, PLAIN_TEXT),
    },
    "loadbalancers": {(STALLED, REFUSED), (STALLED, QUOTA_EXCEEDED), (STALLED, BLOCKED)},
    "threescale": {(IN_SYNC, "")},
}
HEADER = """# Conditions

What the `status.conditions` of each kind may say. The types and reasons are read off the code, and a test holds this
page to it. Reasons that are not listed are the other side's own (AWS's error codes, for one), or one of many: then the
message tells. Where nothing else is said a condition is True or absent; those of Accounts and AccountClaims stay as a
record of what was, and `status.state` says what is.

`kubectl wait --for=condition=Ready account/NAME` and the like rest on them.
"""


def found() -> dict[str, set[tuple[str, str]]]:
    """By area, each type with each reason that the code names."""
    written = said()
    return {area: written.get(area, set()) | BESIDE.get(area, set()) for area in TITLES}


def rendered() -> str:
    parts = [HEADER]
    for area, title in TITLES.items():
        parts += [f"\n## {title}\n\n| type | of | reasons | says |\n|---|---|---|---|\n"]
        for type_ in sorted({type_ for type_, _ in found()[area]}):
            kinds, meaning = MEANINGS[area][type_]
            reasons = ", ".join(f"`{reason}`" for each, reason in sorted(found()[area]) if each == type_ and reason)
            parts.append(f"| `{type_}` | {kinds} | {reasons} | {meaning} |\n")
    return "".join(parts)


@pytest.mark.parametrize("area", TITLES)
def test_every_condition_that_is_written_has_a_meaning(area: str) -> None:
    assert {type_ for type_, _ in found()[area]} == set(MEANINGS[area])


def test_every_area_that_writes_conditions_is_told_of() -> None:
    assert {area for area, pairs in said().items() if pairs} <= set(TITLES)


def test_the_page_is_as_the_code() -> None:
    assert PAGE.read_text() == rendered(), f"write it anew: ./run python {Path(__file__).relative_to(ROOT)}"


if __name__ == "__main__":
    PAGE.write_text(rendered())
