"""What must be true once everything has settled: the ledger of the cloud equals the custom resources.

Every sentence that `Oracle.violations` returns is something lost, doubled, leaked, or not done. While a lifecycle is
under way some are expected; what is judged is whether all are gone within the time that a test gives, and stay away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from chaos_cluster import OPERATOR, Cluster, Workflows, secret_entry
from chaos_worker_log import WorkerLog

from localcloud.aws.contract import World
from localcloud.aws.control import Emulator

# Lifecycles without an object.
STANDING = ("Organization/", "AccountValidation/")


@dataclass
class Expected:
    """What a test has asked for."""

    pool_sizes: dict[str, int] = field(default_factory=lambda: {"default": 1})
    claims: set[str] = field(default_factory=set)
    """Claims that exist; each in the namespace of its own name."""
    gone: set[str] = field(default_factory=set)
    """Accounts whose deletion was asked for."""
    federated: str = ""
    """The claim whose account a federated access opens; empty if there is none."""
    disowned: set[str] = field(default_factory=set)
    """AWS account ids that lost their Account on purpose: Perdure does not close accounts in this version."""


@dataclass(frozen=True)
class State:
    """Both sides at one moment."""

    accounts: list[dict[str, Any]]
    claims: list[dict[str, Any]]
    pools: list[dict[str, Any]]
    secrets: list[dict[str, Any]]
    world: World


class Oracle:
    """Compares both sides."""

    def __init__(self, cluster: Cluster, emulator: Emulator, workflows: Workflows, worker_log: Path) -> None:
        self._cluster = cluster
        self._emulator = emulator
        self._workflows = workflows
        self._log = WorkerLog(worker_log)
        self.others: list[Callable[[], Iterable[str]]] = []
        """What else must be true, for sweeps of further lifecycles."""

    def violations(self, expected: Expected) -> list[str]:
        """Everything that is not as it should be."""
        try:
            state = self.look()
            return [
                *_pools(state, expected),
                *_accounts(state, expected),
                *_keys(state),
                *_claims(state, expected),
                *_secrets(state),
                *self._running(state),
                *self._log.complaints(),
                *(violation for check in self.others for violation in check()),
            ]
        except httpx.TransportError as error:
            return [f"a server does not answer: {error}"]

    def look(self) -> State:
        """Both sides now."""
        accounts = self._cluster.list("accounts")
        others = {f"{each['metadata']['name']}-secret" for each in accounts if _customers(each)}
        return State(
            accounts=[each for each in accounts if not _customers(each)],
            claims=[each for each in self._cluster.list("accountclaims") if not _customers(each)],
            pools=self._cluster.list("accountpools"),
            secrets=[each for each in self._cluster.list("secrets") if each["metadata"]["name"] not in others],
            world=self._emulator.world(),
        )

    def _running(self, state: State) -> Iterator[str]:
        running = self._workflows.running()
        wanted = {
            f"{kind}/{item['metadata']['namespace']}/{item['metadata']['name']}/{item['metadata']['uid']}"
            for kind, items in (
                ("Account", self._cluster.list("accounts")),
                ("AccountClaim", self._cluster.list("accountclaims")),
                ("AccountPool", state.pools),
                ("AWSFederatedRole", self._cluster.list("awsfederatedroles")),
                ("AWSFederatedAccountAccess", self._cluster.list("awsfederatedaccountaccesses")),
            )
            for item in items
        }
        found = {id_ for id_ in running if not id_.startswith(STANDING)}
        yield from (f"no workflow for {id_}" for id_ in sorted(wanted - found))
        yield from (f"a workflow without an object: {id_}" for id_ in sorted(found - wanted))
        yield from (f"phase Bug: {id_}" for id_, phase in running.items() if phase == "Bug")
        yield from (f"ended badly: {id_}" for id_ in self._workflows.broken())

    def forget(self) -> None:
        """Begin a new case: what the log said before is not held against it."""
        self._log.forget()


def _customers(obj: dict[str, Any]) -> bool:
    """What has a life of its own beside the pools: its sweep says what must be true of it."""
    fake = (obj["metadata"].get("annotations") or {}).get("managed.openshift.com/fake") == "true"
    return fake or bool(obj["spec"].get("byoc"))


def _pools(state: State, expected: Expected) -> Iterator[str]:
    for pool in state.pools:
        name, status = pool["metadata"]["name"], pool.get("status") or {}
        size = expected.pool_sizes.get(name, 0)
        members = [a for a in state.accounts if a["spec"].get("accountPool", "") == name and _pool_owned(a)]
        claimed = [a for a in members if (a.get("status") or {}).get("claimed")]
        if status.get("availableAccounts") != size:
            yield f"pool {name}: {status.get('availableAccounts')} available, wanted {size}"
        if status.get("claimedAccounts") != len(claimed):
            yield f"pool {name}: says {status.get('claimedAccounts')} claimed, there are {len(claimed)}"
        fresh = [a for a in members if not a["spec"].get("legalEntity", {}).get("id")]
        if len(fresh) != size:
            yield f"pool {name}: {len(fresh)} accounts without a legal entity, wanted {size}"


def _accounts(state: State, expected: Expected) -> Iterator[str]:
    world = state.world
    for account in state.accounts:
        name, status = account["metadata"]["name"], account.get("status") or {}
        if name in expected.gone:
            yield f"Account {name} is still there"
        elif status.get("state") != "Ready":
            yield f"Account {name} is {status.get('state')!r}"
        elif bool(status.get("claimed")) != bool(account["spec"].get("claimLink")):
            link = account["spec"].get("claimLink")
            yield f"Account {name}: claimed is {status.get('claimed')}, its link is {link!r}"
    recorded = Counter(a["spec"].get("awsAccountID", "") for a in state.accounts)
    names = {a["spec"].get("awsAccountID", ""): a["metadata"]["name"] for a in state.accounts}
    active = {member.id: member for member in world.members() if member.state == "ACTIVE"}
    for id_, count in recorded.items():
        if count > 1 or id_ not in active:
            yield f"AWS account {id_!r}: {count} Accounts, {'in' if id_ in active else 'not in'} the organization"
    for id_, member in active.items():
        if id_ not in recorded and id_ not in expected.disowned:
            yield f"AWS account {id_} ({member.name}) has no Account"
        if id_ in names and names[id_] != member.name:
            yield f"AWS account {id_} is {member.name}, its Account {names[id_]}"
    yield from _twice("e-mail address", (member.email for member in active.values()))
    yield from _twice("account name", (member.name for member in active.values()))
    yield from (f"{i.state} instance {i.id} in {i.account}, {i.region}" for i in world.instances)
    for id_ in recorded:
        cases = sum(id_ in case.subject for case in world.cases)
        if cases != 1:
            yield f"AWS account {id_}: {cases} support cases"
    for id_ in expected.disowned & set(active):
        yield from (f"{user.name} left in {id_}" for user in world.users if user.account == id_)
        ours = (
            role for role in world.roles if role.account == id_ and role.name.startswith("ManagedOpenShift-Support")
        )
        yield from (f"{role.name} left in {id_}" for role in ours)


def _keys(state: State) -> Iterator[str]:
    """What must be true of keys; a fleet manager's claim has a role instead, which its sweep looks at."""
    equipped = {c["spec"].get("accountLink") for c in state.claims if c["spec"].get("fleetManagerConfig")}
    secrets = {s["metadata"]["name"]: s for s in state.secrets if s["metadata"]["namespace"] == OPERATOR}
    for account in state.accounts:
        if account["metadata"]["name"] in equipped:
            continue
        name, id_ = account["metadata"]["name"], account["spec"].get("awsAccountID", "")
        keys = [key for key in state.world.keys if key.account == id_ and key.user.startswith("osdManagedAdmin-")]
        secret = secrets.get(f"{name}-secret")
        if len(keys) != 1 or not keys[0].active:
            yield f"Account {name}: {len(keys)} keys of the admin user"
        elif secret is None:
            yield f"Account {name}: no key Secret"
        elif secret_entry(secret, "aws_access_key_id") != keys[0].id:
            yield f"Account {name}: the Secret holds another key than the user has"
        users = [user for user in state.world.users if user.account == id_]
        if len(users) != 1:
            yield f"Account {name}: {len(users)} IAM users"


def _claims(state: State, expected: Expected) -> Iterator[str]:
    found = {claim["metadata"]["name"]: claim for claim in state.claims}
    yield from (f"claim {name} is not there" for name in sorted(expected.claims - set(found)))
    yield from (f"claim {name} is still there" for name in sorted(set(found) - expected.claims))
    accounts = {account["metadata"]["name"]: account for account in state.accounts}
    units = {unit.id: unit for unit in state.world.units}
    for name, claim in found.items():
        link, state_ = claim["spec"].get("accountLink", ""), (claim.get("status") or {}).get("state")
        account = accounts.get(link)
        if state_ != "Ready" or account is None:
            yield f"claim {name} is {state_}, linked to {link!r}"
            continue
        spec = account["spec"]
        if (spec.get("claimLink"), spec.get("claimLinkNamespace")) != (name, claim["metadata"]["namespace"]):
            yield f"claim {name}: Account {link} names {spec.get('claimLink')!r}"
        member = next((m for m in state.world.members() if m.id == spec.get("awsAccountID")), None)
        unit = units.get(member.parent) if member else None
        if unit is None or unit.name != claim["spec"]["legalEntity"]["id"] or unit.id != claim["spec"].get("accountOU"):
            yield f"claim {name}: its account is in {unit.name if unit else None}"
    links = Counter(a["spec"].get("claimLink") for a in state.accounts if a["spec"].get("claimLink"))
    for link, count in links.items():
        if link not in found or count > 1:
            yield f"{count} Accounts name claim {link}, which is {'there' if link in found else 'not there'}"
    yield from _twice("organizational unit", (f"{unit.parent}/{unit.name}" for unit in state.world.units))


def _secrets(state: State) -> Iterator[str]:
    owners = {f"{account['metadata']['name']}-secret" for account in state.accounts}
    claims = {claim["metadata"]["name"]: claim for claim in state.claims}
    accounts = {account["metadata"]["name"]: account for account in state.accounts}
    keys = {key.account: key.id for key in state.world.keys}
    for secret in state.secrets:
        name, namespace = secret["metadata"]["name"], secret["metadata"]["namespace"]
        if namespace == OPERATOR and name.endswith("-secret") and name not in owners:
            yield f"Secret {name} has no Account"
        if not namespace.startswith("tenant-"):
            continue
        claim = claims.get(namespace)
        if claim is None:
            yield f"Secret {namespace}/{name} is left without its claim"
            continue
        account = accounts.get(claim["spec"].get("accountLink", ""))
        if account and secret_entry(secret, "aws_access_key_id") != keys.get(account["spec"].get("awsAccountID", "")):
            yield f"Secret {namespace}/{name} holds another key than its account has"
    held = {s["metadata"]["namespace"] for s in state.secrets}
    yield from (f"claim {name} has no Secret" for name in sorted(set(claims) - held))


def _pool_owned(account: dict[str, Any]) -> bool:
    return any(owner.get("kind") == "AccountPool" for owner in account["metadata"].get("ownerReferences", []))


def _twice(what: str, values: Iterable[str]) -> Iterator[str]:
    yield from (f"{what} {value} is there {count} times" for value, count in Counter(values).items() if count > 1)
