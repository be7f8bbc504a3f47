"""Federated access as turns on the installation of AWS accounts: a role and an access to a tenant's account.

    grant: role and access are made; renew: the role's policies change; end: the role is deleted, and its access

`violations` checks what must be true then: IAM has what the objects say, once, and nothing else of theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chaos_cluster import OPERATOR
from chaos_federated_effects import ACCESSES, JUDGED, POLICY, ROLE, ROLES
from chaos_lab import Lab

ACCESS = "outsider"
_MANAGED = (["AmazonEC2ReadOnlyAccess"], ["AmazonS3ReadOnlyAccess"])


class Federation:
    """The turns, on one installation."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._renewals = 0

    def ready_to_grant(self) -> None:
        """Have a claim whose account an access can open, and no access."""
        if self._lab.tenant is None:
            self._lab.take()
            self._lab.agree()
        if self._lab.cluster.list(ROLES):
            self.end()
            self._lab.agree()
        self._lab.oracle.forget()

    def grant(self) -> None:
        """Make a role, and an access to the account of the claim that is served."""
        tenant = self._lab.tenant
        assert tenant is not None
        self._lab.expected.federated = tenant.name
        self._make(ROLES, OPERATOR, ROLE, self._role())
        access = {
            "externalCustomerAWSIAMARN": "arn:aws:iam::123456789012:user/aws-account-operator",
            "awsCustomerCredentialSecret": {"name": "aws-credentials", "namespace": tenant.name},
            "awsFederatedRole": {"name": ROLE, "namespace": OPERATOR},
        }
        self._make(ACCESSES, tenant.name, ACCESS, access)

    def renew(self) -> None:
        """Change the role's policies."""
        self._renewals += 1
        self._lab.cluster.patch(ROLES, OPERATOR, ROLE, {"spec": self._role()})

    def end(self) -> None:
        """Delete the role."""
        self._lab.expected.federated = ""
        self._lab.cluster.delete(ROLES, OPERATOR, ROLE)

    def _role(self) -> dict[str, Any]:
        statement = {"effect": "Allow", "action": [f"sqs:Get{self._renewals}"], "resource": ["*"]}
        return {
            "roleDisplayName": "Insight",
            "roleDescription": "Reads",
            "awsManagedPolicies": _MANAGED[self._renewals % 2],
            "awsCustomPolicy": {"name": POLICY, "description": "Reads", "awsStatements": [statement]},
        }

    def _make(self, plural: str, namespace: str, name: str, spec: dict[str, Any]) -> None:
        kind = "AWSFederatedRole" if plural == ROLES else "AWSFederatedAccountAccess"
        typed = {"apiVersion": "aws.managed.openshift.io/v1alpha1", "kind": kind}
        self._lab.cluster.create(plural, namespace, {**typed, "metadata": {"name": name}, "spec": spec})

    def violations(self) -> Iterator[str]:
        """What IAM has of it, against what was asked for."""
        lab, world = self._lab, self._lab.emulator.world()
        roles = [role for role in world.roles if role.name.startswith(f"{ROLE}-")]
        policies = [policy for policy in world.policies if policy.name.startswith(f"{POLICY}-")]
        yield from (f"{each.name} is left of a judging" for each in world.policies if each.name.startswith(JUDGED))
        wanted = int(bool(lab.expected.federated))
        if (len(roles), len(policies)) != (wanted, wanted):
            yield f"{len(roles)} federated roles and {len(policies)} policies, wanted {wanted} of each"
        objects, accesses = lab.cluster.list(ROLES), lab.cluster.list(ACCESSES)
        if (len(objects), len(accesses)) != (wanted, wanted):
            yield f"{len(objects)} AWSFederatedRoles and {len(accesses)} accesses, wanted {wanted} of each"
            return
        for role, access in zip(objects, accesses, strict=True):
            yield from self._granted(role, access)

    def _granted(self, role: dict[str, Any], access: dict[str, Any]) -> Iterator[str]:
        status = role.get("status") or {}
        if (status.get("state"), status.get("observedGeneration")) != ("Valid", role["metadata"]["generation"]):
            yield f"the AWSFederatedRole is {status.get('state')}"
        if (access.get("status") or {}).get("state") != "Ready":
            yield f"the access is {(access.get('status') or {}).get('state')}"
            return
        labels = access["metadata"]["labels"]
        attached = self._attached(labels["awsAccountID"], f"{ROLE}-{labels['uid']}")
        if attached != {*role["spec"]["awsManagedPolicies"], f"{POLICY}-{labels['uid']}"}:
            yield f"the role in {labels['awsAccountID']} has {sorted(attached)}"

    def _attached(self, account_id: str, role: str) -> set[str]:
        payer, endpoint = self._lab.payer(), self._lab.emulator.endpoint
        arn = f"arn:aws:iam::{account_id}:role/OrganizationAccountAccessRole"
        keys = payer.client("sts", endpoint_url=endpoint).assume_role(RoleArn=arn, RoleSessionName="oracle")[
            "Credentials"
        ]
        iam = payer.client(
            "iam",
            endpoint_url=endpoint,
            aws_access_key_id=keys["AccessKeyId"],
            aws_secret_access_key=keys["SecretAccessKey"],
            aws_session_token=keys["SessionToken"],
        )
        return {p["PolicyName"] for p in iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]}
