"""The roles in deploy/rbac on a real API server: its own authorizer says who may do what.

The needed rights are listed as the product's code asks for them; what is not listed is asked as well where it would be
a grave thing to have. And the processes themselves run under their roles through a whole life of an account: created,
claimed, released.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from product import process
from service_accounts import DEPLOY, KINDS, RBAC_GROUP, apply, documents, kubeconfig_of
from temporalio.client import Client
from waiting import eventually

from activities.loadbalancers.replaced_operator import LEASES
from domain.accounts import ACCOUNT_CLAIM, ACCOUNT_POOL
from domain.custom_resources import all_crds
from domain.identity import Kind
from domain.instances.constants import POLICY_GROUP
from domain.operator_domain import DEFAULT
from domain.threescale.drift import COMPARED
from engine.errors import Absent
from engine.kube import SECRET, KubeApi
from engine.kube.json import at, flag, text
from engine.settings import Settings
from localcloud.deployment import Deployment
from starters.cli.listing import object_rows as objects_of
from starters.cli.session import Session

pytestmark = pytest.mark.integration

AAO = "aws.managed.openshift.io"
POOLBOY = "poolboy.gpte.redhat.com"
YAWOL = "yawol.stackit.cloud"
THREESCALE = "capabilities.3scale.net"
AWS_PROVIDER = "infrastructure.cluster.x-k8s.io"
CLUSTER_API = "cluster.x-k8s.io"
OPERATOR_NAMESPACE = "aws-account-operator"
TENANT = "rbac-tenant"

WORKER = "system:serviceaccount:perdure:perdure-worker"
WATCH = "system:serviceaccount:perdure:perdure-watch"
AUDITS = "system:serviceaccount:perdure:perdure-audits"

REVIEW = Kind(
    name="SubjectAccessReview", group="authorization.k8s.io", version="v1", plural="subjectaccessreviews", area=""
)


class Right(NamedTuple):
    """One question to the authorizer."""

    verb: str
    resource: str
    namespace: str = ""
    name: str = ""
    group: str = ""


def ours(verbs: str, resources: str, namespace: str = "", group: str = AAO) -> list[Right]:
    """Rights on an area's own kinds."""
    return [Right(verb, name, namespace, "", group) for verb in verbs.split() for name in resources.split()]


def of_claims(verbs: str, resources: str, namespace: str = "") -> list[Right]:
    """Rights on the kinds of resource claims."""
    return ours(verbs, resources, namespace, POOLBOY)


ALL_KINDS = "accountpools accounts accountclaims awsfederatedroles awsfederatedaccountaccesses"
LIVING_CLAIM_KINDS = "resourceclaims resourcehandles resourcepools resourcepoolscalings"
CLAIM_KINDS = f"{LIVING_CLAIM_KINDS} resourceproviders resourcewatches"
LB_KINDS = "loadbalancers loadbalancersets loadbalancermachines"
LB_STATUSES = "loadbalancers/status loadbalancersets/status loadbalancermachines/status"
API_KINDS = "products backends activedocs developeraccounts developerusers applications applicationauths"
CLAIM_STATUSES = " ".join(f"{plural}/status" for plural in LIVING_CLAIM_KINDS.split())
# The accounts and regions of the AWS provider's clusters, which PERDURE_INSTANCES_QUEUES may name.
CLUSTERS = [
    *ours("list watch", "awsclusters awsclusterroleidentities", "", AWS_PROVIDER),
    *ours("list watch", "awsmanagedcontrolplanes", "", f"controlplane.{CLUSTER_API}"),
]

NEEDED: dict[str, list[Right]] = {
    WORKER: [
        *ours("get list patch", ALL_KINDS),
        *ours("patch", " ".join(f"{plural}/status" for plural in ALL_KINDS.split())),
        *ours("create delete", "accounts"),
        *ours("delete", "awsfederatedaccountaccesses", TENANT),
        *ours("update", "accountpools/finalizers accounts/finalizers"),
        *ours("update", "accountclaims/finalizers awsfederatedaccountaccesses/finalizers", TENANT),
        *ours("update", "products/finalizers openapis/finalizers", TENANT, THREESCALE),
        *(Right(verb, "secrets", TENANT, "aws") for verb in ("get", "create", "patch", "delete")),
        Right("create", "events", OPERATOR_NAMESPACE),
        Right("get", "secrets", OPERATOR_NAMESPACE, "aws-account-operator-credentials"),
        *(
            Right(verb, "configmaps", OPERATOR_NAMESPACE, "aws-account-operator-configmap")
            for verb in ("get", "list", "watch", "patch")
        ),
        Right("get", "configmaps", OPERATOR_NAMESPACE, "aws-account-operator-lock"),
        *(Right(v, "configmaps", "perdure", "perdure-pause") for v in ("list", "watch")),
        Right("get", "leases", OPERATOR_NAMESPACE, "aws-account-operator-lock", "coordination.k8s.io"),
        Right("get", "pods", OPERATOR_NAMESPACE, "aws-account-operator-7d9f"),
        *of_claims("get list watch", CLAIM_KINDS),
        *of_claims("patch update", f"{LIVING_CLAIM_KINDS} {CLAIM_STATUSES}"),
        *of_claims("patch", "resourceproviders"),
        *of_claims("create delete", "resourcehandles"),
        *of_claims("delete", "resourceclaims resourcepoolscalings"),
        *(Right(verb, "namespaces", "", TENANT) for verb in ("get", "list", "watch")),
        Right("get", "users", "", "alice", "user.openshift.io"),
        Right("get", "identities", "", "sso:alice", "user.openshift.io"),
        *(Right(verb, "events", TENANT) for verb in ("create", "list", "patch", "update")),
        *ours("get list patch create delete", LB_KINDS, TENANT, YAWOL),
        *ours("get list watch patch", API_KINDS, TENANT, THREESCALE),
        *ours("patch", "products/status applications/status", TENANT, THREESCALE),
        *ours("delete", "developerusers applications proxyconfigpromotes", TENANT, THREESCALE),
        Right("list", "apimanagers", TENANT, "", "apps.3scale.net"),
        Right("get", "leases", TENANT, "82355b9c.3scale.net", "coordination.k8s.io"),
        *ours("get list watch patch", "awsmachines awsmachinepools", TENANT, AWS_PROVIDER),
        *CLUSTERS,
        *ours("get list watch patch delete", "machines", TENANT, CLUSTER_API),
        *ours("get list watch patch", "machinedeployments", TENANT, CLUSTER_API),
        *ours("get", "machinesets", TENANT, CLUSTER_API),
        *(Right(verb, "services", TENANT, "shop") for verb in ("get", "patch")),
        Right("patch", "services/status", TENANT, "shop"),
        Right("list", "nodes"),
        *(Right("get", "leases", "kube-system", lease, "coordination.k8s.io") for lease in LEASES.values()),
    ],
    WATCH: [
        *ours("list watch", ALL_KINDS),
        *(Right(v, "configmaps", OPERATOR_NAMESPACE, "aws-account-operator-configmap") for v in ("list", "watch")),
        *(Right(v, "secrets", OPERATOR_NAMESPACE, "aws-account-operator-credentials") for v in ("list", "watch")),
        Right("create", "leases", "perdure", "", "coordination.k8s.io"),
        *(Right(v, "leases", "perdure", "perdure-watch", "coordination.k8s.io") for v in ("get", "update", "watch")),
        *(Right(v, "configmaps", "perdure", "perdure-audit") for v in ("list", "watch")),
        *(Right(v, "configmaps", "perdure", "perdure-pause") for v in ("list", "watch")),
        *of_claims("list watch", f"{LIVING_CLAIM_KINDS} resourceproviders"),
        *(Right(verb, "namespaces") for verb in ("list", "watch")),
        *of_claims("get list create patch", "resourcewatches"),
        *ours("list watch", LB_KINDS, TENANT, YAWOL),
        *ours("list watch", API_KINDS, TENANT, THREESCALE),
        *(Right(verb, "apimanagers", TENANT, "", "apps.3scale.net") for verb in ("list", "watch")),
        *ours("list watch", "awsmachines awsmachinepools", TENANT, AWS_PROVIDER),
        *ours("list watch", "machines machinedeployments", TENANT, CLUSTER_API),
        *CLUSTERS,
        *(Right(verb, plural) for verb in ("list", "watch") for plural in ("services", "nodes", "events")),
    ],
    AUDITS: [
        *(Right(verb, "configmaps", "perdure", "perdure-audit") for verb in ("get", "patch")),
        Right("create", "configmaps", "perdure"),
        Right("get", "configmaps", OPERATOR_NAMESPACE, "aws-account-operator-configmap"),
        Right("get", "secrets", OPERATOR_NAMESPACE, "aws-account-operator-credentials"),
        *ours("list", "accounts awsfederatedroles awsfederatedaccountaccesses"),
        *of_claims("list", "resourceclaims resourcehandles resourcepools resourceproviders resourcewatches"),
        *ours("list", LB_KINDS, "", YAWOL),
        Right("list", "roles", TENANT, "", RBAC_GROUP),
        *ours("list", " ".join(model.kind_of.plural for model in COMPARED), "", THREESCALE),
        *ours("list", "awsmachines awsmachinepools", "", AWS_PROVIDER),
        *CLUSTERS,
        Right("get", "secrets", TENANT, "cloud"),
    ],
}
WITHHELD: dict[str, list[Right]] = {
    WORKER: [
        *ours("create delete", "accountpools accountclaims awsfederatedroles"),
        *ours("create", "awsfederatedaccountaccesses"),
        *(Right(verb, "secrets") for verb in ("list", "watch", "update", "deletecollection")),
        Right("get", "configmaps", TENANT, "any"),
        *(
            Right(verb, "configmaps", OPERATOR_NAMESPACE, "aws-account-operator-configmap")
            for verb in ("update", "delete")
        ),
        Right("patch", "configmaps", OPERATOR_NAMESPACE, "aws-account-operator-lock"),
        Right("get", "pods", TENANT, "any"),
        Right("create", "clusterroles", "", "", RBAC_GROUP),
        Right("create", "serviceaccounts/token", "perdure", "perdure-worker"),
        *of_claims("create", "resourceclaims resourcepools resourcepoolscalings"),
        *ours("create delete update", "awsmachines awsmachinepools awsmachines/status", TENANT, AWS_PROVIDER),
        *ours("create update", "machines machines/status machinedeployments", TENANT, CLUSTER_API),
        *ours("patch", "machines/status machinedeployments/scale machinesets", TENANT, CLUSTER_API),
        *ours("delete", "machinedeployments machinesets", TENANT, CLUSTER_API),
        *of_claims("create update delete", "resourceproviders"),
        *of_claims("create patch delete", "resourcewatches"),
        *of_claims("delete", "resourcepools"),
        *ours("create delete", "developeraccounts tenants", TENANT, THREESCALE),
        Right("patch", "namespaces", "", TENANT),
        Right("list", "users", "", "", "user.openshift.io"),
        *(Right(verb, "services", TENANT, "shop") for verb in ("create", "delete", "update")),
        *(Right(verb, "nodes", "", "node-a") for verb in ("patch", "delete")),
        # Of managed kinds only what an installation grants.
        *(Right(verb, "deployments", TENANT, "any", "apps") for verb in ("get", "create", "patch", "delete")),
    ],
    WATCH: [
        *ours("patch create delete update", ALL_KINDS),
        *of_claims("patch create delete update", f"{LIVING_CLAIM_KINDS} {CLAIM_STATUSES} resourceproviders"),
        *of_claims("delete update", "resourcewatches"),
        *(Right(verb, "namespaces", "", TENANT) for verb in ("get", "patch")),
        Right("list", "secrets", OPERATOR_NAMESPACE),
        Right("watch", "secrets"),
        Right("get", "secrets", TENANT, "aws"),
        Right("update", "leases", "perdure", "another", "coordination.k8s.io"),
        Right("update", "leases", "kube-system", "perdure-watch", "coordination.k8s.io"),
        *(Right(verb, "services", TENANT, "shop") for verb in ("get", "patch", "create", "delete")),
    ],
    AUDITS: [
        *ours("patch create delete update", ALL_KINDS),
        *of_claims("patch create delete update", CLAIM_KINDS),
        *ours("patch create delete update", LB_KINDS, TENANT, YAWOL),
        *ours("patch create delete update", API_KINDS, TENANT, THREESCALE),
        *ours("patch create delete update", "awsmachines awsmachinepools", TENANT, AWS_PROVIDER),
        *(Right(verb, "secrets", TENANT) for verb in ("list", "watch", "create", "patch", "delete")),
        *(Right(verb, "configmaps", "perdure", "perdure-pause") for verb in ("get", "patch", "delete")),
        Right("create", "configmaps", TENANT),
        *(Right(verb, "roles", TENANT, "", RBAC_GROUP) for verb in ("create", "escalate", "bind")),
    ],
}


ROLES = {
    "operators": "perdure-operator",
    "clients": "aws-account-operator-client",
    "claim-operators": "perdure-claims-operator",
    "claim-admins": "perdure-claims-admin",
    "claim-editors": "perdure-claims-edit",
    "claim-approvers": "perdure-claims-approve",
    "lb-viewers": "perdure-loadbalancers-view",
    "lb-operators": "perdure-loadbalancers-operator",
    "lb-auditors": "perdure-loadbalancers-audit",
}
PEOPLE = (
    *("people", "clients", "claims", "loadbalancers", "services", "loadbalancers-people"),
    *("threescale", "threescale-people", "instances"),
)


@pytest.fixture(scope="module")
async def kube(deployment: Deployment) -> AsyncIterator[KubeApi]:
    async with await KubeApi.open(Settings(), "tests", deployment.env()["KUBECONFIG"]) as api:
        await apply(api, {"kind": "Namespace", "metadata": {"name": TENANT}})
        for obj in documents("namespaces.yaml", *(f"rbac/{name}.yaml" for name in ("worker", "watch", "pauses"))):
            await apply(api, obj)
        audits = sorted(f"rbac/audits/{path.name}" for path in (DEPLOY / "rbac" / "audits").glob("*audits.yaml"))
        for obj in documents(*audits, *(f"rbac/{name}.yaml" for name in PEOPLE)):
            await apply(api, obj)
        for name, role in ROLES.items():
            await apply(api, binding(name, role))
        yield api


def binding(group: str, role: str) -> dict[str, Any]:
    return {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"test-{group}"},
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": RBAC_GROUP, "kind": "Group", "name": group}],
    }


async def allowed(api: KubeApi, right: Right, *, user: str = "", groups: tuple[str, ...] = ()) -> bool:
    resource, _, subresource = right.resource.partition("/")
    attributes = {
        "verb": right.verb,
        "group": right.group,
        "resource": resource,
        "subresource": subresource,
        "namespace": right.namespace,
        "name": right.name,
    }
    spec = {"user": user or "somebody", "groups": list(groups), "resourceAttributes": attributes}
    answer = await api.create(REVIEW, {"metadata": {}, "spec": spec})
    assert not text(answer, "status", "evaluationError"), answer
    return flag(answer, "status", "allowed")


async def all_granted(api: KubeApi, rights: Sequence[Right], *, user: str = "", groups: tuple[str, ...] = ()) -> None:
    """The API server knows of a new role or binding a moment later."""
    refused = list(rights)

    async def none_refused() -> bool:
        refused[:] = [right for right in refused if not await allowed(api, right, user=user, groups=groups)]
        return not refused

    await eventually(none_refused, lambda: f"{user or groups} may do {refused}")


@pytest.mark.parametrize("user", [WORKER, WATCH, AUDITS])
async def test_each_process_may_do_what_its_code_does(kube: KubeApi, user: str) -> None:
    await all_granted(kube, NEEDED[user], user=user)


@pytest.mark.parametrize("user", [WORKER, WATCH, AUDITS])
async def test_each_process_may_do_nothing_that_it_has_no_use_for(kube: KubeApi, user: str) -> None:
    granted: list[Right] = []

    async def none_granted() -> bool:
        granted[:] = [right for right in WITHHELD[user] if await allowed(kube, right, user=user)]
        return not granted

    # The API server forgets a moment later what another test granted.
    await eventually(none_granted, lambda: f"{user} may do {granted}")


async def test_operators_have_every_lever(kube: KubeApi) -> None:
    levers = [
        *ours("get list patch", ALL_KINDS, OPERATOR_NAMESPACE),
        *ours("patch", "accounts/status awsfederatedroles/status", OPERATOR_NAMESPACE),
        *ours("update", "accountclaims/finalizers awsfederatedaccountaccesses/finalizers", TENANT),
        Right("create", "events", OPERATOR_NAMESPACE),
    ]
    await all_granted(kube, levers, groups=("operators",))
    assert not await allowed(kube, Right("get", "secrets", OPERATOR_NAMESPACE, "any"), groups=("operators",))


async def test_clients_of_the_replaced_operator_keep_their_role(kube: KubeApi) -> None:
    granted = ours("create delete get list watch", "accountclaims awsfederatedaccountaccesses", TENANT)
    granted += ours("get list watch", "awsfederatedroles", TENANT)
    withheld = [*ours("get", "accounts", TENANT), *ours("create delete", "awsfederatedroles", TENANT)]
    withheld += ours("update patch", "accountclaims", TENANT)
    await all_granted(kube, granted, groups=("clients",))
    assert [right for right in withheld if await allowed(kube, right, groups=("clients",))] == []


async def test_namespace_admins_claim_and_editors_look(kube: KubeApi) -> None:
    claims = of_claims("get list watch create update patch delete deletecollection", "resourceclaims", TENANT)
    look = of_claims("get list watch", "resourceclaims", TENANT)
    granted = {"claim-admins": claims, "claim-editors": look}
    for group, rights in granted.items():
        await all_granted(kube, rights, groups=(group,))
    # A claimant may not approve, and has no right to the kinds of the operator's namespace.
    withheld = of_claims("get patch update", "resourceclaims/status", TENANT)
    withheld += of_claims("get create patch", "resourcehandles resourcepools resourceproviders", TENANT)
    for group in granted:
        assert [right for right in withheld if await allowed(kube, right, groups=(group,))] == []
    changes = of_claims("create update patch delete", "resourceclaims", TENANT)
    assert [right for right in changes if await allowed(kube, right, groups=("claim-editors",))] == []


async def test_approvers_write_the_status_and_nothing_else(kube: KubeApi) -> None:
    granted = of_claims("get update patch", "resourceclaims/status", TENANT)
    withheld = of_claims("create update patch delete", "resourceclaims", TENANT)
    await all_granted(kube, granted, groups=("claim-approvers",))
    assert [right for right in withheld if await allowed(kube, right, groups=("claim-approvers",))] == []


async def test_operators_of_claims_have_every_lever(kube: KubeApi) -> None:
    levers = [*of_claims("get list patch", CLAIM_KINDS), *of_claims("patch", CLAIM_STATUSES)]
    await all_granted(kube, levers, groups=("claim-operators",))
    assert not await allowed(kube, Right("get", "secrets", TENANT, "any"), groups=("claim-operators",))


async def test_operators_of_load_balancers_have_every_lever_and_viewers_look(kube: KubeApi) -> None:
    levers = ours("get list patch delete", LB_KINDS, TENANT, YAWOL)
    levers += ours("patch", f"{LB_STATUSES} loadbalancers/scale loadbalancersets/scale", TENANT, YAWOL)
    await all_granted(kube, levers, groups=("lb-operators",))
    changes = ours("create patch delete", LB_KINDS, TENANT, YAWOL)
    assert [right for right in changes if await allowed(kube, right, groups=("lb-viewers",))] == []
    secrets = Right("get", "secrets", TENANT, "any")
    await all_granted(kube, [secrets], groups=("lb-auditors",))
    rules = {
        name: await allowed(kube, secrets, groups=(f"lb-{name}",)) for name in ("viewers", "operators", "auditors")
    }
    assert rules == {"viewers": False, "operators": False, "auditors": True}


async def test_a_managed_kind_is_granted_by_the_pattern(kube: KubeApi) -> None:
    pattern = documents("rbac/managed-kinds.yaml")
    needed = {
        WORKER: [Right(verb, "configmaps", TENANT, "any") for verb in ("get", "list", "create", "patch", "delete")],
        WATCH: [Right(verb, "configmaps", TENANT) for verb in ("list", "watch")],
    }
    for obj in pattern:
        await apply(kube, obj)
    try:
        for user, rights in needed.items():
            await all_granted(kube, rights, user=user)
    finally:
        for obj in pattern:
            await kube.delete(KINDS[obj["kind"]], "", obj["metadata"]["name"])


async def test_a_user_who_may_see_one_area_only_is_shown_that_area(
    kube: KubeApi, deployment: Deployment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await apply(kube, {"kind": "ServiceAccount", "metadata": {"name": "looker", "namespace": "perdure"}})
    looker = {"kind": "ServiceAccount", "name": "looker", "namespace": "perdure"}
    await apply(kube, {**binding("looker", "perdure-aws-accounts-view"), "subjects": [looker]})
    await apply(
        kube, {"kind": "AccountPool", "metadata": {"name": "seen", "namespace": TENANT}, "spec": {"poolSize": 0}}
    )
    await all_granted(kube, ours("list", "accountpools", TENANT), user="system:serviceaccount:perdure:looker")
    path = await kubeconfig_of(kube, admin_of(deployment), "perdure", "looker", tmp_path / "looker")
    async with await KubeApi.open(Settings(), "tests", str(path)) as api:
        rows, readable = await objects_of(Session(Settings(), api, temporal=cast(Client, None)), None, TENANT)
    assert [row.name for row in rows] == ["seen"]
    assert readable == {
        "Account",
        "AccountClaim",
        "AccountPool",
        "AWSFederatedAccountAccess",
        "AWSFederatedRole",
    }
    assert "resourceclaims without a lifecycle are not shown" in capsys.readouterr().err.replace("\n", " ")


async def test_every_kind_is_in_the_roles_for_people(kube: KubeApi) -> None:
    files = ("rbac/people.yaml", "rbac/claims.yaml", "rbac/loadbalancers-people.yaml", "rbac/instances.yaml")
    roles = {obj["metadata"]["name"]: obj for obj in documents(*files)}
    named = {
        AAO: ("perdure-aws-accounts-view", "perdure-operator"),
        POOLBOY: ("perdure-claims-operator",),
        YAWOL: ("perdure-loadbalancers-view", "perdure-loadbalancers-operator", "perdure-loadbalancers-audit"),
        POLICY_GROUP: ("perdure-instances-view", "perdure-instances-operator"),
    }
    for group, names in named.items():
        plurals = {
            text(crd, "spec", "names", "plural") for crd in all_crds(DEFAULT) if text(crd, "spec", "group") == group
        }
        assert plurals
        for name in names:
            assert plurals <= {resource for rule in roles[name]["rules"] for resource in rule["resources"]}


async def test_the_deployments_are_accepted(kube: KubeApi) -> None:
    for obj in documents("processes/worker.yaml", "processes/watch.yaml"):
        await apply(kube, obj)
        stored = await kube.get(KINDS["Deployment"], "perdure", obj["metadata"]["name"])
        assert stored["spec"]["template"]["spec"]["serviceAccountName"] == obj["metadata"]["name"]
        await kube.delete(KINDS["Deployment"], "perdure", obj["metadata"]["name"])


async def test_an_account_lives_its_life_under_the_roles(kube: KubeApi, deployment: Deployment, tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        for name in ("worker", "watch"):
            kubeconfig = await kubeconfig_of(kube, admin_of(deployment), "perdure", f"perdure-{name}", tmp_path / name)
            await stack.enter_async_context(process(deployment, name, KUBECONFIG=str(kubeconfig)))
        pool = {"metadata": {"name": "rbac"}, "spec": {"poolSize": 1}}
        await kube.create(ACCOUNT_POOL, pool, OPERATOR_NAMESPACE)
        stack.push_async_callback(kube.delete, ACCOUNT_POOL, OPERATOR_NAMESPACE, "rbac")
        await eventually(lambda: count(kube, "availableAccounts"), "the pool has its account")

        await kube.create(ACCOUNT_CLAIM, CLAIM, TENANT)
        await eventually(lambda: state(kube, "Ready"), "the claim is ready")
        assert text(await kube.get(SECRET, TENANT, "aws"), "data", "aws_access_key_id")
        await eventually(lambda: count(kube, "claimedAccounts"), "the account is claimed")

        await kube.delete(ACCOUNT_CLAIM, TENANT, "claim")
        await eventually(lambda: state(kube, ""), "the claim is gone")
        with pytest.raises(Absent):
            await kube.get(SECRET, TENANT, "aws")


# The watcher elects a leader, as in production.
CLAIM: dict[str, Any] = {
    "metadata": {"name": "claim"},
    "spec": {
        "legalEntity": {"id": "rbac", "name": "RBAC"},
        "awsCredentialSecret": {"name": "aws", "namespace": TENANT},
        "aws": {"regions": [{"name": "us-east-1"}]},
        "accountLink": "",
        "accountPool": "rbac",
    },
}


async def count(kube: KubeApi, field: str) -> bool:
    return at(await kube.get(ACCOUNT_POOL, OPERATOR_NAMESPACE, "rbac"), "status", field) == 1


async def state(kube: KubeApi, wanted: str) -> bool:
    """Whether the claim is in the state; gone for the empty one."""
    try:
        claim = await kube.get(ACCOUNT_CLAIM, TENANT, "claim")
    except Absent:
        return wanted == ""
    return text(claim, "status", "state") == wanted


def admin_of(deployment: Deployment) -> Path:
    """The administrator's kubeconfig."""
    return Path(deployment.env()["KUBECONFIG"])
