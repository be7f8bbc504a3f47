"""Resource claims end to end: a deployment with the product at work, for tests that each have their own ground.

The product runs under a role of the tests' own: it may do everything but touch the kinds of one group, which shows what
becomes of claims on kinds that an installation has not granted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from uuid import uuid4

from product import StoppedAndStarted
from service_accounts import kubeconfig_of

from claims.claims_ground import FOLLOWED, GADGET, GADGET_GROUP, OPERATOR_NAMESPACE, PATIENT, Ground
from claims.claims_objects import NAMES, Json
from domain.built_in_kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, CUSTOM_RESOURCE_DEFINITION
from domain.identity import Kind, all_kinds
from engine.errors import Absent, Conflict
from engine.kube import NAMESPACE, KubeApi
from engine.settings import Settings
from localcloud.deployment import Deployment
from localcloud.objects import Objects
from localcloud.seed import seed_cluster

# Templates that depend on the clock are rendered again so often; nothing else may need it.
CLOCK_SECONDS = 5
# Everything else has to be noticed when it happens, however slow the machine is: no look by the clock comes to help.
LOOKS = ("MANAGE_CLAIMS_INTERVAL", "MANAGE_POOLS_INTERVAL", "RESOURCE_REFRESH_INTERVAL")
NEVER_SECONDS = 3600

DENIED_GROUP = "denied.perdure.dev"  # of kinds on which the product has no rights
ROLE = "claims-lab"
SERVICE_ACCOUNT = Kind(name="ServiceAccount", group="", version="v1", plural="serviceaccounts", area="")


class Lab(StoppedAndStarted):
    """The deployment, its objects followed, and the product on it."""

    def __init__(self, deployment: Deployment, kube: KubeApi) -> None:
        self.kube = kube
        self.objects = Objects(kube)
        self.others: Ground | None = None  # of a tenant with which no test has to do
        super().__init__(deployment)
        self._grounds: list[Ground] = []

    async def environ(self) -> dict[str, str]:
        """A role of the tests' own, and nothing that is looked at by the clock alone."""
        kubeconfig = await self._kubeconfig()
        intervals = dict.fromkeys(LOOKS, str(NEVER_SECONDS)) | {"MANAGE_HANDLES_INTERVAL": str(CLOCK_SECONDS)}
        return {"KUBECONFIG": str(kubeconfig), "OPERATOR_DOMAIN": NAMES.domain, **intervals}

    async def _kubeconfig(self) -> Path:
        """Rights on everything except the kinds of one group."""
        ours = sorted({NAMES.of(kind).group for kind in all_kinds().values()})
        groups = [*ours, "coordination.k8s.io", "user.openshift.io", GADGET_GROUP]
        for kind, obj in (
            (SERVICE_ACCOUNT, {"metadata": {"name": ROLE}}),
            (CLUSTER_ROLE, {"metadata": {"name": ROLE}, "rules": [rule(groups)]}),
            (CLUSTER_ROLE_BINDING, binding(ROLE)),
        ):
            with suppress(Conflict):
                await self.kube.create(kind, obj, OPERATOR_NAMESPACE if kind is SERVICE_ACCOUNT else "")
        admin = Path(self._deployment.env()["KUBECONFIG"])
        return await kubeconfig_of(self.kube, admin, OPERATOR_NAMESPACE, ROLE, admin.with_name("claims-lab"))

    async def emptied(self) -> None:
        """Until nothing is left that only the product takes away, so that later tests find none of it; not for ever."""

        def is_empty() -> bool:
            return not any(each.handles() or each.claims() for each in self._grounds)

        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENT):
                await self.objects.until(is_empty)

    @asynccontextmanager
    async def ground(self) -> AsyncIterator[Ground]:
        """Ground for one test."""
        namespace = f"claims-{uuid4().hex[:6]}"
        await self.kube.create(NAMESPACE, {"metadata": {"name": namespace}})
        ground = Ground(self.kube, self.objects, namespace, self.others)
        self._grounds.append(ground)
        try:
            yield ground
        finally:
            await ground.leave()


@asynccontextmanager
async def laboratory(deployment: Deployment) -> AsyncIterator[Lab]:
    """The deployment with the tests' own kind served and everything followed; the product is not started."""
    settings = Settings(OPERATOR_DOMAIN=NAMES.domain)
    async with await KubeApi.open(settings, "tests", deployment.env()["KUBECONFIG"]) as kube:
        await seed_cluster(kube)
        await serve(kube, GADGET)
        lab = Lab(deployment, kube)
        async with lab.objects.followed(*FOLLOWED), lab.ground() as others:
            await others.provider()
            lab.others = others
            yield lab


def rule(groups: Sequence[str]) -> Json:
    """Every right on every kind of these groups."""
    return {"apiGroups": list(groups), "resources": ["*"], "verbs": ["*"]}


def binding(role: str) -> Json:
    """A ClusterRole of that name for the product."""
    subject = {"kind": "ServiceAccount", "name": ROLE, "namespace": OPERATOR_NAMESPACE}
    reference = {"apiGroup": CLUSTER_ROLE.group, "kind": "ClusterRole", "name": role}
    return {"metadata": {"name": role}, "roleRef": reference, "subjects": [subject]}


async def serve(kube: KubeApi, kind: Kind, *, scope: str = "Namespaced") -> None:
    """Install a definition for a kind of the tests' own, whose objects may hold anything, and wait for it."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition = {
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": scope,
            "names": {"kind": kind.name, "plural": kind.plural, "singular": kind.name.lower()},
            "versions": [
                {
                    "name": kind.version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": anything},
                    "subresources": {"status": {}},
                }
            ],
        },
    }
    with suppress(Conflict):
        await kube.create(CUSTOM_RESOURCE_DEFINITION, definition)
    async with asyncio.timeout(PATIENT):
        while not await _is_served(kube, kind):  # noqa: ASYNC110 - the server has no event for us
            await asyncio.sleep(0.05)


async def _is_served(kube: KubeApi, kind: Kind) -> bool:
    try:
        await kube.list(kind)
    except Absent:
        return False
    return True
