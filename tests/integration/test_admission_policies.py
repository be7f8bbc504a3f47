"""The admission policies in deploy/rbac on a real API server: who may write the annotations that give up safety.

Each user is a ServiceAccount with nothing but the role that such a user has.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from crd_lab import install
from service_accounts import KINDS, RBAC_GROUP, apply, documents, kubeconfig_of
from waiting import eventually

from domain.accounts import ACCOUNT_CLAIM, AWS_FEDERATED_ACCOUNT_ACCESS
from domain.accounts.constants import CCS_ACCESS_KEY
from domain.accounts.constants import CONFIG_MAP as CONFIG_MAP_NAME
from domain.accounts.force_release import FORCE_RELEASE
from domain.control_annotations import PAUSED, RETRY
from domain.identity import Kind
from domain.loadbalancers import LOAD_BALANCER_MACHINE
from domain.loadbalancers.constants import GIVEN_UP_ANNOTATION
from domain.loadbalancers.machine.api_access import role_rules
from domain.threescale import OPEN_API, PRODUCT, TENANT
from domain.threescale.auto_promotion import PROMOTE
from domain.threescale.cascading_deletion import CASCADE
from domain.threescale.deletion import RETAIN
from engine.errors import Absent, Denied
from engine.kube import CONFIG_MAP, KubeApi
from engine.kube.json import sequence
from engine.settings import Settings
from localcloud.deployment import Deployment

pytestmark = pytest.mark.integration

SPACE = "levers"
MACHINE = "lb-machine"
POLICIES = ("accounts-policy", "loadbalancers-policy", "threescale-policy")
SHIPPED = ("worker", "people", "claims", "loadbalancers", "threescale", "threescale-people", *POLICIES)


def rule(resources: str, verbs: str = "get create patch delete") -> dict[str, Any]:
    return {"apiGroups": [PRODUCT.group], "resources": resources.split(), "verbs": verbs.split()}


def config_map_rule(verbs: str) -> dict[str, Any]:
    return {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [CONFIG_MAP_NAME], "verbs": verbs.split()}


# By ServiceAccount: the shipped role that it is bound to, or the rules of its own.
USERS: dict[str, str | list[dict[str, Any]]] = {
    "tenant": "perdure-aws-accounts-edit",
    "operator": "perdure-operator",
    "developer": [rule("products openapis")],
    "publisher": [rule("products openapis"), rule("proxyconfigpromotes", "create")],
    "editor": [rule("products tenants")],
    "owner": [rule("products"), rule("applications", "delete")],
    "3scale-operator": "perdure-threescale-operator",
    "processes": "perdure-worker",
    "3scale-worker": "perdure-threescale-worker",
    MACHINE: role_rules("lb", MACHINE),
    "configured": [config_map_rule("get patch")],
    "configurator": [config_map_rule("get patch update")],
}


class Ground:
    """The cluster, as its administrator and as each user sees it."""

    def __init__(self, admin: KubeApi, users: dict[str, KubeApi]) -> None:
        self.admin = admin
        self.users = users

    async def made(self, kind: Kind, name: str, spec: dict[str, Any], **annotations: str) -> None:
        """The object as if it had been made just now."""
        with suppress(Absent):
            await self.admin.delete(kind, SPACE, name)
        meta = {"name": name, "annotations": {key: value for key, value in annotations.items() if value}}
        await self.admin.create(kind, {"metadata": meta, "spec": spec}, SPACE)

    async def refusal(self, user: str, kind: Kind, name: str, *patches: dict[str, Any]) -> str:
        """What the API server says to the user's patches; empty if it takes them."""
        try:
            for patch in patches:
                await self.users[user].patch(kind, SPACE, name, patch)
        except Denied as error:
            return error.message
        return ""

    async def refuses(self, user: str, kind: Kind, name: str, lever: str, words: str) -> bool:
        """Whether a policy with these words refuses the lever; the administrator unsets it where the user may set it.

        Without its role the user would be refused, too.
        """
        if words in await self.annotates(user, kind, name, lever):
            return True
        await self.admin.patch(kind, SPACE, name, {"metadata": {"annotations": {lever: None}}})
        return False

    async def annotates(self, user: str, kind: Kind, name: str, lever: str, value: str | None = "true") -> str:
        return await self.refusal(user, kind, name, {"metadata": {"annotations": {lever: value}}})


@pytest.fixture(scope="module")
async def ground(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Ground]:
    kubeconfig, home = Path(deployment.env()["KUBECONFIG"]), tmp_path_factory.mktemp("users")
    async with AsyncExitStack() as stack:
        admin = await stack.enter_async_context(await KubeApi.open(Settings(), "tests", str(kubeconfig)))
        await install(admin)
        for name in (SPACE, "perdure", "aws-account-operator"):
            await apply(admin, {"kind": "Namespace", "metadata": {"name": name}})
        for obj in documents(*(f"rbac/{name}.yaml" for name in SHIPPED)):
            await apply(admin, obj)
            if obj["kind"].startswith("ValidatingAdmission"):
                kind = KINDS[obj["kind"]]
                stack.push_async_callback(admin.delete, kind, "", obj["metadata"]["name"])
        users = {}
        for name, role in USERS.items():
            await given(admin, name, role)
            path = await kubeconfig_of(admin, kubeconfig, SPACE, name, home / name)
            users[name] = await stack.enter_async_context(await KubeApi.open(Settings(), "tests", str(path)))
        found = Ground(admin, users)
        await found.made(ACCOUNT_CLAIM, "probe", CLAIM)
        await found.made(PRODUCT, "probe", {"name": "probe"})
        await found.made(LOAD_BALANCER_MACHINE, MACHINE, MACHINE_SPEC)
        probes = (
            ("tenant", ACCOUNT_CLAIM, "probe", PAUSED, "ask an operator"),
            ("developer", PRODUCT, "probe", PROMOTE, "changes production"),
            (MACHINE, LOAD_BALANCER_MACHINE, MACHINE, PAUSED, "only the status"),
        )
        for probe in probes:
            await eventually(partial(found.refuses, *probe), f"the API server has taken the policy up: {probe}")
        yield found


async def given(api: KubeApi, name: str, role: str | list[dict[str, Any]]) -> None:
    """The ServiceAccount with its rights in the namespace."""
    meta = {"name": name, "namespace": SPACE}
    await apply(api, {"kind": "ServiceAccount", "metadata": meta})
    kind = "ClusterRole" if isinstance(role, str) else "Role"
    if isinstance(role, list):
        await apply(api, {"kind": "Role", "metadata": meta, "rules": role})
    reference = {"apiGroup": RBAC_GROUP, "kind": kind, "name": role if isinstance(role, str) else name}
    subject = {"kind": "ServiceAccount", **meta}
    await apply(api, {"kind": "RoleBinding", "metadata": meta, "roleRef": reference, "subjects": [subject]})


CLAIM: dict[str, Any] = {
    "legalEntity": {"id": "levers", "name": "Levers"},
    "awsCredentialSecret": {"name": "aws", "namespace": SPACE},
    "aws": {"regions": [{"name": "us-east-1"}]},
    "accountLink": "",
}
ACCESS: dict[str, Any] = {
    "awsCustomerCredentialSecret": {"name": "aws", "namespace": SPACE},
    "awsFederatedRole": {"name": "role", "namespace": SPACE},
    "externalCustomerAWSIAMARN": "arn:aws:iam::111122223333:role/somebody",
}
MACHINE_SPEC: dict[str, Any] = {
    "infrastructure": {"authSecretRef": {"name": "cloud", "namespace": SPACE}, "flavor": {}, "image": {}},
    "portID": "port",
    "loadBalancerRef": {"name": "lb", "namespace": SPACE},
}
TENANT_SPEC: dict[str, Any] = {
    "email": "admin@example.com",
    "masterCredentialsRef": {"name": "master"},
    "organizationName": "org",
    "passwordCredentialsRef": {"name": "password"},
    "systemMasterUrl": "https://master.example.com",
    "tenantSecretRef": {"name": "tenant"},
    "username": "admin",
}
SPECS: dict[str, dict[str, Any]] = {
    ACCOUNT_CLAIM.name: CLAIM,
    AWS_FEDERATED_ACCOUNT_ACCESS.name: ACCESS,
    PRODUCT.name: {"name": "shop"},
    OPEN_API.name: {"openapiRef": {"url": "https://example.com/shop.yaml"}},
    TENANT.name: TENANT_SPEC,
}


@pytest.mark.parametrize("kind", [ACCOUNT_CLAIM, AWS_FEDERATED_ACCOUNT_ACCESS], ids=lambda kind: kind.name)
async def test_only_operators_and_perdure_pause_and_resume_what_a_tenant_may_edit(ground: Ground, kind: Kind) -> None:
    await ground.made(kind, "held", SPECS[kind.name])
    assert "ask an operator" in await ground.annotates("tenant", kind, "held", PAUSED)
    for user in ("operator", "processes"):
        assert await ground.annotates(user, kind, "held", PAUSED) == ""
        assert "ask an operator" in await ground.annotates("tenant", kind, "held", PAUSED, None)
        assert "ask an operator" in await ground.annotates("tenant", kind, "held", PAUSED, "false")
        assert await ground.annotates(user, kind, "held", PAUSED, None) == ""


async def test_a_tenant_cannot_make_a_claim_that_is_paused_from_the_start(ground: Ground) -> None:
    meta = {"name": "born-held", "annotations": {PAUSED: "true"}}
    with pytest.raises(Denied, match="ask an operator"):
        await ground.users["tenant"].create(ACCOUNT_CLAIM, {"metadata": meta, "spec": CLAIM}, SPACE)


async def test_only_operators_may_release_a_claim_uncleaned(ground: Ground) -> None:
    await ground.made(ACCOUNT_CLAIM, "wedged", CLAIM)
    refusal = await ground.annotates("tenant", ACCOUNT_CLAIM, "wedged", FORCE_RELEASE, "the account is closed")
    assert "perdure.dev/let-go may be changed only by users who may update accountclaims/finalizers" in refusal
    assert await ground.annotates("operator", ACCOUNT_CLAIM, "wedged", FORCE_RELEASE, "the account is closed") == ""
    assert await ground.annotates("tenant", ACCOUNT_CLAIM, "wedged", RETRY, "once") == ""


async def test_who_may_not_update_the_operators_config_map_changes_one_key(ground: Ground) -> None:
    """The worker may only patch it."""
    data = {"account-limit": "5", "feature.close_on_release": "false"}
    await ground.admin.create(CONFIG_MAP, {"metadata": {"name": CONFIG_MAP_NAME}, "data": data}, SPACE)
    patches: list[dict[str, Any]] = [
        {"data": {"account-limit": "500"}},
        {"data": {"account-limit": None}},
        {"data": {"close_account.dry_run": "false", CCS_ACCESS_KEY: "arn"}},
        {"binaryData": {"x": "eA=="}},
        {"metadata": {"annotations": {"a": "b"}}},
        {"metadata": {"finalizers": ["example.com/x"]}},
        {"immutable": True},
    ]

    async def refused(patch: dict[str, Any]) -> bool:
        return "only the key CCS-Access-Arn" in await ground.refusal("configured", CONFIG_MAP, CONFIG_MAP_NAME, patch)

    await eventually(partial(refused, patches[0]), "the API server has taken the policy up")
    assert [patch for patch in patches if not await refused(patch)] == []
    for value in ("arn", "another", None):
        patch = {"data": {CCS_ACCESS_KEY: value}}
        assert await ground.refusal("configured", CONFIG_MAP, CONFIG_MAP_NAME, patch) == ""
    assert await ground.refusal("configurator", CONFIG_MAP, CONFIG_MAP_NAME, *patches) == ""


async def test_a_tenant_keeps_the_levers_that_give_up_nothing(ground: Ground) -> None:
    await ground.made(ACCOUNT_CLAIM, "free", CLAIM)
    assert await ground.annotates("tenant", ACCOUNT_CLAIM, "free", RETRY, "once") == ""
    await ground.made(ACCOUNT_CLAIM, "free", CLAIM, **{PAUSED: "true"})
    assert await ground.annotates("tenant", ACCOUNT_CLAIM, "free", RETRY, "twice") == ""


@pytest.mark.parametrize("kind", [PRODUCT, OPEN_API], ids=lambda kind: kind.name)
async def test_only_who_may_promote_may_have_a_product_promoted(ground: Ground, kind: Kind) -> None:
    await ground.made(kind, "shop", SPECS[kind.name])
    assert "changes production" in await ground.annotates("developer", kind, "shop", PROMOTE)
    for user in ("publisher", "3scale-operator", "3scale-worker"):
        assert await ground.annotates(user, kind, "shop", PROMOTE) == ""
        # A person who may edit a promoted object may edit and withdraw the promotion.
        assert await ground.annotates("developer", kind, "shop", RETAIN) == ""
        assert await ground.annotates("developer", kind, "shop", PROMOTE, None) == ""


@pytest.mark.parametrize(
    ("kind", "entitled"),
    [(PRODUCT, "owner"), (TENANT, "3scale-operator")],
    ids=lambda each: getattr(each, "name", each),
)
async def test_only_who_may_delete_the_dependents_may_have_them_deleted(
    ground: Ground, kind: Kind, entitled: str
) -> None:
    await ground.made(kind, "parent", SPECS[kind.name])
    assert "deletes other objects" in await ground.annotates("editor", kind, "parent", CASCADE)
    assert await ground.annotates(entitled, kind, "parent", CASCADE) == ""
    assert await ground.annotates("editor", kind, "parent", RETAIN) == ""
    assert await ground.annotates("editor", kind, "parent", CASCADE, None) == ""


async def test_a_machine_writes_its_status_and_nothing_else_of_itself(ground: Ground) -> None:
    kind, name = LOAD_BALANCER_MACHINE, MACHINE
    await ground.made(kind, name, MACHINE_SPEC)
    own = {"metadata": {"labels": {"set": "another"}}}, {"metadata": {"finalizers": ["example.com/kept"]}}
    for patch in (*own, {"spec": {"portID": "another"}}):
        assert "only the status" in await ground.refusal(MACHINE, kind, name, patch)
    for lever in (PAUSED, GIVEN_UP_ANNOTATION):
        assert "only the status" in await ground.annotates(MACHINE, kind, name, lever)
    conditions = [{"type": "EnvoyReady", "status": "True"}]
    machine = ground.users[MACHINE]
    written = await machine.patch(kind, SPACE, name, {"status": {"conditions": conditions}}, subresource="status")
    assert sequence(written, "status", "conditions")
    # Others are not meant: Perdure and operators.
    assert await ground.refusal("processes", kind, name) == ""
    await ground.admin.patch(kind, SPACE, name, own[0])
