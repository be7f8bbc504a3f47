"""docs/conditions.md names every condition that the code writes, with its reasons, and no other.

`./run python tests/decisions/test_docs_conditions.py` regenerates the page: types and reasons as they are read off the
code, what they mean from here.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from written_conditions import conditions_by_area

from domain.accounts.federated.resources import RoleState
from domain.claims.provider_conditions import PLAIN_TEXT, RENDERED, VARS_ARE_TEMPLATES
from domain.claims.stalled_condition import HANDLE_STALLED, STALLED
from domain.loadbalancers.services.service_status import MISCONFIGURED, PARTLY_IGNORED, UNSERVABLE
from domain.loadbalancers.stalled_condition import BLOCKED, QUOTA_EXCEEDED, REFUSED
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
        "AccountClientError": (
            "Account",
            "AWS refused a request for a reason that only a person can correct; the account is Failed",
        ),
        "AccountCreationFailed": (
            "Account",
            "AWS created no account, or the setup of the account failed; the account is Failed",
        ),
        "AuthenticationError": (
            "Account of a customer",
            "AWS refuses the customer's key or role; False once AWS accepts both",
        ),
        "AuthenticationFailed": (
            "AccountClaim",
            "the customer's Secret is missing, incomplete or refused; False once the cause is corrected",
        ),
        "CCSAccountClaimFailed": ("AccountClaim", "the customer's account has failed"),
        "Claimed": ("Account, AccountClaim", "Account and claim belong to each other"),
        "Creating": ("Account", "AWS was creating the account"),
        "DeletionHeld": ("Account", "the account is deleted only after its claim has been released"),
        "Failed": ("Account, AWSFederatedAccountAccess", "the object has failed; the message says why"),
        "InitializingRegions": ("Account", "the account's regions were being initialized"),
        "InternalError": ("AccountClaim", "the customer's account has failed; the message says why"),
        "Invalid": ("AWSFederatedRole", "IAM refuses the role's policies, or the role has no policies"),
        "InvalidAccountClaim": ("AccountClaim", "the claim's spec has a fault; the message says which"),
        "InvalidConfigMap": ("Account, AccountClaim", "a key of the ConfigMap is missing or cannot be read"),
        "OptInRegionsEnabled": ("Account", "the opt-in regions are enabled"),
        "OptInRegionsManualAction": (
            "Account",
            "a person has to enable the regions that the message names; the account becomes Ready without them",
        ),
        "OptingInRegions": ("Account", "regions were being enabled"),
        "Pending": (
            "Account",
            "the account could not be created because the limit (`account-limit`) was reached or could not be read",
        ),
        "PendingVerification": ("Account", "AWS Support was asked to raise the account's limits"),
        "Ready": ("Account, AWSFederatedAccountAccess", "the object became Ready"),
        "ReleaseBlocked": ("AccountClaim", "the account cannot be released yet; the message says why"),
        "Reused": ("Account", "a claim released the account, which is reserved for claims of the same legal entity"),
        "ServiceQuotasManualAction": (
            "Account",
            "a person has to raise quotas (the message names up to five); the account becomes Ready without this",
        ),
        "SecretUnusable": (
            "AccountClaim",
            "the Secret that the claim names belongs to another object; the Secret is neither changed nor deleted",
        ),
        "Stalled": (
            "AccountPool",
            "the pool creates no accounts, because of a limit, a budget, a pause, or an error in the ConfigMap",
        ),
        "Synced": (
            "AWSFederatedAccountAccess",
            "False: AWS refused the latest change; an access that was granted earlier stays",
        ),
        "Unclaimed": ("AccountClaim", "the claim waits for an account"),
        "Valid": ("AWSFederatedRole", "IAM has accepted the role's policies"),
    },
    "claims": {
        "Stalled": (
            "ResourceClaim, ResourceHandle, ResourcePool",
            "a person has to correct something; the reason says what",
        ),
        "VarsAreTemplates": (
            "ResourceProvider",
            "a variable of the provider is a template; Poolboy 1.12 treats it as plain text, later releases render it",
        ),
    },
    "loadbalancers": {
        "HasKeepalivedMaster": ("LoadBalancerSet", "one of the set's machines holds the virtual address"),
        "MarkedForDeletion": (
            "LoadBalancerMachine",
            "the machine is unhealthy; it is replaced after two minutes unless it recovers",
        ),
        "Stalled": (
            "LoadBalancer",
            "OpenStack or the API server refuses something that is needed; the message names the field and the object",
        ),
        "perdure.dev/Misconfigured": (
            "Service",
            "`Unservable`: the Service cannot be served, or its LoadBalancer is refused; only its endpoints change. "
            "`PartlyIgnored`: a value is ignored, everything else applies. The message says what is wrong",
        ),
    },
    "agent": {
        "ConfigReady": (
            "LoadBalancerMachine",
            "the whole configuration of the LoadBalancer is served; False: Envoy rejects a part of it",
        ),
        "EnvoyReady": ("LoadBalancerMachine", "Envoy answers"),
        "EnvoyUpToDate": ("LoadBalancerMachine", "Envoy uses the version that the agent serves"),
        "KeepalivedMaster": ("LoadBalancerMachine", "the machine holds the virtual address"),
        "KeepalivedProcess": ("LoadBalancerMachine", "keepalived runs"),
        "KeepalivedStatsFile": ("LoadBalancerMachine", "keepalived's statistics are at most five minutes old"),
    },
    "threescale": {
        "Failed": ("all kinds", "3scale refuses the object, the spec has an error, or the object waits for something"),
        "InSync": ("all kinds", "a sync of the object is in progress; for an OpenAPI, a sync of its product"),
        "Invalid": ("all kinds", "the spec has an error that a person has to correct"),
        "Orphan": ("all kinds", "an object that this object refers to is missing"),
        "Ready": ("all but Product and Backend", "3scale has what the spec says"),
        "Synced": ("Product, Backend", "3scale has what the spec says"),
        "Waiting": ("DeveloperAccount", "the account waits for its first user"),
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
    "loadbalancers": {(STALLED, REFUSED), (STALLED, QUOTA_EXCEEDED), (STALLED, BLOCKED)}
    | {(MISCONFIGURED, UNSERVABLE), (MISCONFIGURED, PARTLY_IGNORED)},
    "threescale": {(IN_SYNC, "")},
}
HEADER = """# Conditions

Look up here what a condition of an object means, or which one to wait for, as in
`kubectl wait --for=condition=Ready account/NAME`.

Most conditions are True or absent. These can also be False: conditions whose meaning in the table says so,
`HasKeepalivedMaster`, all conditions that a load balancer's machine reports, and most conditions of 3scale objects. If
a condition of an Account or AccountClaim is named after a state, it stays True after that state has passed; the present
state is in `status.state`. The tables omit reasons that come from an API, such as AWS's error codes. If a condition has
too many possible reasons for a table, they are omitted, too. In both cases, read the condition's message. The types and
reasons are taken from the code, and a test compares this page with the code.
"""


def found() -> dict[str, set[tuple[str, str]]]:
    """By area, each type with each reason that the code names."""
    written = conditions_by_area()
    return {area: written.get(area, set()) | BESIDE.get(area, set()) for area in TITLES}


def rendered() -> str:
    parts = [HEADER]
    for area, title in TITLES.items():
        parts += [f"\n## {title}\n\n| type | kind | reasons | meaning |\n|---|---|---|---|\n"]
        for type_ in sorted({type_ for type_, _ in found()[area]}):
            kinds, meaning = MEANINGS[area][type_]
            reasons = ", ".join(f"`{reason}`" for each, reason in sorted(found()[area]) if each == type_ and reason)
            parts.append(f"| `{type_}` | {kinds} | {reasons} | {meaning} |\n")
    return "".join(parts)


@pytest.mark.parametrize("area", TITLES)
def test_every_condition_that_is_written_has_a_meaning(area: str) -> None:
    assert {type_ for type_, _ in found()[area]} == set(MEANINGS[area])


def test_every_area_that_writes_conditions_is_documented() -> None:
    assert {area for area, pairs in conditions_by_area().items() if pairs} <= set(TITLES)


def test_the_page_is_as_the_code() -> None:
    assert PAGE.read_text() == rendered(), f"regenerate it: ./run python {Path(__file__).relative_to(ROOT)}"


if __name__ == "__main__":
    PAGE.write_text(rendered())
