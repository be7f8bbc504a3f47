"""Claims that bring their account, and fake ones, as turns on the installation of AWS accounts.

    bring: a customer's account is claimed; take away: that claim is deleted
    begin to bring, cut short: that claim is deleted while a region of the account is initialised, without a worker
    pretend: a fake claim is made; stop pretending: it is deleted

`violations` checks what must be true then: one Account, one user, one role and one key of ours in the account while
it is claimed, none of them afterwards, and the customer's own user as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chaos_cluster import OPERATOR, secret_entry, until
from chaos_customers_effects import CUSTOMER
from chaos_lab import EMULATED, REGIONS, SETTLE_SECONDS, Lab

from localcloud.aws.contract import CustomerAccount

INPUT, OUTPUT = "customer-key", "aws-credentials"
HELD = "finalizer.aws.managed.openshift.io/byoc"


class Customers:
    """The turns, on one installation."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._place = f"{CUSTOMER}0"
        self._brought: CustomerAccount | None = None
        self.name = ""

    def bring(self) -> None:
        """Claim a customer's account."""
        customer = self._lab.emulator.customer()
        self._begin()
        keys = {"aws_access_key_id": customer.access_key_id, "aws_secret_access_key": customer.secret_access_key}
        self._lab.cluster.create("secrets", self.name, {"metadata": {"name": INPUT}, "stringData": keys})
        self._brought = customer
        self._claim(
            {
                "byoc": True,
                "byocAWSAccountID": customer.account,
                "byocSecretRef": {"name": INPUT, "namespace": self.name},
            }
        )

    def begin_to_bring(self) -> None:
        """Claim a customer's account; the worker dies while an instance of ours is pending there."""
        lab = self._lab
        lab.oracle.forget()
        lab.emulator.config(run_instances_seconds=100_000)
        self.bring()
        until(self._launched, "an instance is pending in the customer's account", SETTLE_SECONDS)
        lab.worker.kill()
        lab.emulator.config(run_instances_seconds=EMULATED["run_instances_seconds"])

    def _launched(self) -> bool:
        brought = self._brought
        return any(brought and each.account == brought.account for each in self._lab.emulator.world().instances)

    def cut_short(self) -> None:
        """Delete the claim, and let the worker begin again."""
        self.end()
        self._lab.worker.start()

    def pretend(self) -> None:
        """Make a fake claim."""
        self._begin()
        self._claim({}, {"managed.openshift.com/fake": "true"})

    def end(self) -> None:
        """Delete the claim."""
        name, self.name = self.name, ""
        self._lab.cluster.delete("accountclaims", name, name)

    def _begin(self) -> None:
        self._lab.turns += 1  # the installation's: what an earlier customer had in its namespace is still there
        self._place = f"{CUSTOMER}{self._lab.turns}"
        self.name, self._brought = self._place, None
        self._lab.cluster.create("namespaces", "", {"metadata": {"name": self.name}})

    def _claim(self, spec: dict[str, Any], annotations: dict[str, str] | None = None) -> None:
        claim = {
            "apiVersion": "aws.managed.openshift.io/v1alpha1",
            "kind": "AccountClaim",
            "metadata": {"name": self.name, "annotations": annotations or {}},
            "spec": {
                "legalEntity": {"id": self.name, "name": self.name},
                "awsCredentialSecret": {"name": OUTPUT, "namespace": self.name},
                "aws": {"regions": [{"name": REGIONS[0]}]},
                "accountLink": "",
                **spec,
            },
        }
        self._lab.cluster.create("accountclaims", self.name, claim)

    def violations(self) -> Iterator[str]:
        """What there is of it in the cluster and in the account, against what was asked for."""
        place = self._place
        claims = [each for each in self._lab.cluster.list("accountclaims") if each["metadata"]["name"] == place]
        wanted = 1 if self.name else 0
        if len(claims) != wanted:
            yield f"{len(claims)} claims {place}, wanted {wanted}"
            return
        secrets = {each["metadata"]["name"]: each for each in self._lab.cluster.list("secrets", place)}
        if (OUTPUT in secrets) != bool(wanted):
            yield f"{place} has {'a' if OUTPUT in secrets else 'no'} Secret of its own"
        if claims and (claims[0].get("status") or {}).get("state") != "Ready":
            yield f"claim {place} is {(claims[0].get('status') or {}).get('state')!r}"
        if self._brought:
            held = HELD in (secrets[INPUT]["metadata"].get("finalizers") or [])
            if held != bool(wanted):
                yield f"the customer's Secret in {place} is {'protected' if held else 'not protected'}"
            yield from self._account(self._brought, claims, secrets, wanted)

    def _account(
        self, brought: CustomerAccount, claims: list[dict[str, Any]], secrets: dict[str, Any], wanted: int
    ) -> Iterator[str]:
        accounts = [
            each
            for each in self._lab.cluster.list("accounts", OPERATOR)
            if each["spec"].get("awsAccountID") == brought.account
        ]
        world = self._lab.emulator.world()
        users = [user.name for user in world.users if user.account == brought.account]
        roles = [role.name for role in world.roles if role.account == brought.account]
        keys = {key.user: key.id for key in world.keys if key.account == brought.account}
        if (len(accounts), len(users), len(roles), len(keys)) != (wanted, wanted + 1, wanted, wanted + 1):
            yield f"{brought.account}: {len(accounts)} Accounts, users {users}, roles {roles}, keys of {sorted(keys)}"
            return
        if keys.get(brought.user) != brought.access_key_id:
            yield f"the customer's own key in {brought.account} is another"
        for account, claim in zip(accounts, claims, strict=True):
            name = account["metadata"]["name"]
            if claim["spec"].get("accountLink") != name:
                yield f"claim {claim['metadata']['name']} is linked to {claim['spec'].get('accountLink')!r}, not {name}"
            secret = secrets.get(OUTPUT)
            ours = next((id_ for user, id_ in keys.items() if user != brought.user), "")
            if secret is None or secret_entry(secret, "aws_access_key_id") != ours:
                yield f"the Secret of {claim['metadata']['name']} holds another key than the account's user has"
