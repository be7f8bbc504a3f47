"""Claims of a fleet manager as turns on the installation of AWS accounts, out of a pool of their own.

    equip: such a claim is made, and gets a role in the place of a key; strip: it is deleted, and the key is made anew

All of them are one legal entity's, so that one account goes to and fro.
"""

from __future__ import annotations

from collections.abc import Iterator

from chaos_cluster import OPERATOR, secret_entry
from chaos_customers_effects import FLEET, FLEET_ROLE
from chaos_lab import REGIONS, Lab

from localcloud.aws.contract import PAYER_ACCOUNT_ID

POOL = "fleet"
CONFIG_MAP, FLAG = "aws-account-operator-configmap", "feature.accountclaim_fleet_manager_trusted_arn"


class FleetManagers:
    """The turns, on one installation."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._last = ""
        self.name = ""

    def begin(self) -> None:
        """Such claims are served from now on, and have a pool; both stay."""
        lab = self._lab
        lab.cluster.patch("configmaps", OPERATOR, CONFIG_MAP, {"data": {FLAG: "true"}})
        lab.make_pool(POOL, 1)
        lab.agree()

    def equip(self) -> None:
        """Make a claim."""
        lab = self._lab
        lab.turns += 1
        lab.oracle.forget()
        self.name = self._last = f"{FLEET}{lab.turns}"
        lab.expected.claims = {*lab.expected.claims, self.name}
        lab.cluster.create("namespaces", "", {"metadata": {"name": self.name}})
        claim = {
            "apiVersion": "aws.managed.openshift.io/v1alpha1",
            "kind": "AccountClaim",
            "metadata": {"name": self.name},
            "spec": {
                "legalEntity": {"id": POOL, "name": POOL},
                "awsCredentialSecret": {"name": "", "namespace": ""},
                "aws": {"regions": [{"name": REGIONS[0]}]},
                "accountLink": "",
                "accountPool": POOL,
                "fleetManagerConfig": {"trustedARN": f"arn:aws:iam::{PAYER_ACCOUNT_ID}:root"},
            },
        }
        lab.cluster.create("accountclaims", self.name, claim)

    def strip(self) -> None:
        """Delete the claim."""
        name, self.name = self.name, ""
        self._lab.dismiss(name)

    def violations(self) -> Iterator[str]:
        """Roles, users and Secrets of the pool's accounts, against what was asked for."""
        lab = self._lab
        world = lab.emulator.world()
        accounts = [each for each in lab.cluster.list("accounts") if each["spec"].get("accountPool") == POOL]
        used = [each for each in accounts if each["spec"].get("legalEntity", {}).get("id")]
        if self._last and len(used) != 1:
            yield f"{len(used)} accounts of the pool {POOL} are or were claimed"
        roles = {role.account for role in world.roles if role.name == FLEET_ROLE}
        equipped = {each["spec"]["awsAccountID"] for each in used} if self.name else set()
        if roles != equipped:
            yield f"{FLEET_ROLE} is in {sorted(roles)}, wanted in {sorted(equipped)}"
        if not self._last:
            return
        secrets = lab.cluster.list("secrets", self._last)
        arns = [secret_entry(secret, "role_arn") for secret in secrets]
        if arns != [f"arn:aws:iam::{id_}:role/{FLEET_ROLE}" for id_ in equipped]:
            yield f"the Secrets of {self._last} lead to {arns}"
        keys = {f"{each['metadata']['name']}-secret" for each in used} if self.name else set()
        left = keys & {secret["metadata"]["name"] for secret in lab.cluster.list("secrets", OPERATOR)}
        named = [each["metadata"]["name"] for each in used if self.name and each["spec"].get("iamUserSecret")]
        if left or named or any(user.account in equipped for user in world.users):
            yield f"a key is left beside the role: Secrets {sorted(left)}, named by {named}"
