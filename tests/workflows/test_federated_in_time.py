"""A federated role and an access on a clock: healing, renewal, an end that waits for the other, and one given up.

Kubernetes and AWS are two objects in memory; workflows, decisions, the worker's edge and the errors are the real ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from lifecycles import PATIENCE
from temporalio import activity
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker
from waiting import eventually

from domain.accounts.config import OperatorConfig
from domain.accounts.constants import FINALIZER, OPERATOR_NAMESPACE
from domain.accounts.federated.access import GIVE_UP_AFTER
from domain.accounts.federated.actions import (
    AttachAccessPolicies,
    ClearValidation,
    CustomerAccount,
    DeleteAccesses,
    EnsureAccessPolicy,
    EnsureAccessRole,
    IdentifyCustomer,
    RevokeAccess,
    StampAccesses,
    ValidatePolicies,
)
from domain.accounts.federated.observed import (
    FederatedAccessWorld,
    FederatedRoleWorld,
    ObserveFederatedAccess,
    ObserveFederatedRole,
    SeenAccess,
    Verdict,
)
from domain.accounts.federated.resources import AWSFederatedAccountAccess, AWSFederatedRole
from domain.accounts.federated.role import ALL_VALID, MESSAGES
from domain.decision import Action, Queue
from domain.resource import timestamp
from domain.writes import Patch, Written, patched
from engine.errors import Denied
from engine.temporal import wake
from tests.replay.recording import keep, recording
from workers.activity_interceptor import Boundary
from workers.registry import workflows_of

WORKFLOWS = workflows_of("accounts")
ROLE, ACCESS = "AWSFederatedRole", "AWSFederatedAccountAccess"
REFERENCE = {"name": "reader", "namespace": OPERATOR_NAMESPACE}
CUSTOM = {"name": "zones", "description": "", "awsStatements": [{"effect": "Allow", "action": ["route53:List*"]}]}


class Pair:
    """A role and an access, and a cloud that does what it is asked unless `refused` names the activity."""

    def __init__(self, env: WorkflowEnvironment) -> None:
        self.env = env
        role = {
            "metadata": {**_meta("reader"), "namespace": OPERATOR_NAMESPACE},
            "spec": {"roleDisplayName": "r", "roleDescription": "r", "awsCustomPolicy": CUSTOM},
        }
        access = {
            "metadata": {**_meta("access"), "namespace": "tenant"},
            "spec": {
                "externalCustomerAWSIAMARN": "arn:aws:iam::1:user/outsider",
                "awsCustomerCredentialSecret": {"name": "keys", "namespace": "tenant"},
                "awsFederatedRole": REFERENCE,
            },
        }
        self.role: AWSFederatedRole | None = AWSFederatedRole.model_validate(role)
        self.access: AWSFederatedAccountAccess | None = AWSFederatedAccountAccess.model_validate(access)
        self.keys = {ROLE: self.role.key, ACCESS: self.access.key}
        self.refused: set[str] = set()
        self.made: list[str] = []

    def of(self, kind: str) -> Any:
        return self.role if kind == ROLE else self.access

    def put(self, kind: str, found: Any) -> None:
        gone = found.metadata.deleting and not found.metadata.finalizers
        if kind == ROLE:
            self.role = None if gone else found
        else:
            self.access = None if gone else found

    def edit(self, kind: str, patch: dict[str, Any]) -> Any:
        before = self.of(kind)
        after = patched(before, patch, str(int(before.metadata.resource_version) + 1))
        self.put(kind, after)
        return after

    async def wake(self, *kinds: str) -> None:
        for kind in kinds:
            await wake(self.env.client, self.keys[kind])

    async def until(self, true: Callable[[], bool]) -> None:
        await eventually(true, lambda: f"{self.role}, {self.access}, {self.made}")

    async def ready(self) -> None:
        """Both at rest."""
        await self.wake(ROLE, ACCESS)
        await self.until(lambda: self.role is not None and self.role.status.state == "Valid")
        await self.until(lambda: self.access is not None and self.access.status.state == "Ready")

    async def delete(self, kind: str) -> None:
        moment = timestamp(await self.env.get_current_time())
        self.edit(kind, {"metadata": {"deletionTimestamp": moment}})
        await self.wake(kind)

    async def ended(self, kind: str) -> None:
        """Gone, and so is its workflow once it has been woken."""
        await self.until(lambda: self.of(kind) is None)
        await self.wake(kind)
        handle = self.env.client.get_workflow_handle(self.keys[kind].workflow_id)
        await asyncio.wait_for(handle.result(), PATIENCE)

    # --- the activities ---

    def activities(self, queue: Queue) -> list[Callable[..., Any]]:
        kinds: dict[type[Action], Callable[[Any], Any]] = {
            ObserveFederatedRole: self._observe_role,
            ObserveFederatedAccess: self._observe_access,
            Patch: self._patch,
            StampAccesses: lambda _: None,
            DeleteAccesses: lambda _: self.edit(ACCESS, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
            ValidatePolicies: lambda action: Verdict(
                generation=action.generation, valid=True, reason=ALL_VALID, message=MESSAGES[ALL_VALID]
            ),
            ClearValidation: lambda _: None,
            IdentifyCustomer: lambda _: CustomerAccount(account_id="111122223333"),
            EnsureAccessPolicy: lambda _: None,
            EnsureAccessRole: lambda _: None,
            AttachAccessPolicies: lambda _: None,
            RevokeAccess: lambda _: None,
        }
        return [self._activity(kind, answer) for kind, answer in kinds.items() if kind.queue is queue]

    def _activity(self, kind: type[Action], answer: Callable[[Any], Any]) -> Callable[..., Awaitable[Any]]:
        async def act(action: Any) -> Any:
            self.made.append(kind.activity)
            if kind.activity in self.refused:
                raise Denied("refused", code="AccessDenied")
            found = answer(action)
            return None if kind is DeleteAccesses else found

        act.__annotations__ = {"action": kind, "return": Any}
        return activity.defn(name=kind.activity)(act)

    def _observe_role(self, look: ObserveFederatedRole) -> FederatedRoleWorld:
        if self.role is None:
            return FederatedRoleWorld(key=look.key, exists=False)
        accesses = (SeenAccess(key=self.access.key, deleting=self.access.metadata.deleting),) if self.access else ()
        return FederatedRoleWorld(key=look.key, role=self.role, accesses=accesses, config=OperatorConfig())

    def _observe_access(self, look: ObserveFederatedAccess) -> FederatedAccessWorld:
        if self.access is None:
            return FederatedAccessWorld(key=look.key, exists=False)
        return FederatedAccessWorld(key=look.key, access=self.access, role=self.role, config=OperatorConfig())

    def _patch(self, write: Patch) -> Written:
        if self.of(write.key.kind) is None:
            return Written(gone=True)
        after = self.edit(write.key.kind, write.patch)
        return Written(resource_version=after.metadata.resource_version)


def _meta(name: str) -> dict[str, Any]:
    return {"name": name, "uid": f"uid-{name}", "generation": 1, "resourceVersion": "1", "finalizers": [FINALIZER]}


@asynccontextmanager
async def at_work(env: WorkflowEnvironment, case: str = "") -> AsyncIterator[Pair]:
    """A pair with workers; the histories of a case with a name are stored where they are recorded."""
    pair = Pair(env)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(Worker(env.client, task_queue="accounts", workflows=WORKFLOWS))
        for queue in (Queue.KUBE, Queue.AWS):
            worker = Worker(
                env.client, task_queue=queue.value, activities=pair.activities(queue), interceptors=[Boundary()]
            )
            await stack.enter_async_context(worker)
        yield pair
        if case and recording():
            for kind, key in pair.keys.items():
                keep(kind, case, await env.client.get_workflow_handle(key.workflow_id).fetch_history())


@pytest.mark.recorded
async def test_an_access_is_granted_renewed_and_goes_with_its_role(env: WorkflowEnvironment) -> None:
    async with at_work(env, "an_access_is_granted_renewed_and_goes_with_its_role") as pair:
        await pair.ready()
        granted = pair.of(ACCESS).status.granted
        pair.edit(ROLE, {"metadata": {"generation": 2}, "spec": {"awsManagedPolicies": ["AmazonS3ReadOnlyAccess"]}})
        await pair.wake(ROLE, ACCESS)
        await pair.until(lambda: pair.of(ACCESS).status.granted != granted)
        await pair.until(lambda: pair.of(ROLE).status.observed_generation == 2)
        await pair.delete(ROLE)
        await pair.until(lambda: pair.of(ACCESS).metadata.deleting)
        await pair.wake(ACCESS)
        await pair.ended(ACCESS)
        assert pair.role is not None
        await pair.wake(ROLE)
        await pair.ended(ROLE)


@pytest.mark.recorded
async def test_a_refused_access_heals_by_itself_once_aws_lets_it(env: WorkflowEnvironment) -> None:
    async with at_work(env, "a_refused_access_heals_by_itself_once_aws_lets_it") as pair:
        pair.refused = {IdentifyCustomer.activity, ValidatePolicies.activity}
        await pair.wake(ROLE, ACCESS)
        await pair.until(lambda: pair.of(ACCESS).status.state == "Failed")
        pair.refused = set()
        await env.sleep(timedelta(minutes=11))
        await pair.until(lambda: pair.of(ACCESS).status.state == "Ready")
        await pair.until(lambda: pair.of(ROLE).status.state == "Valid")
        await pair.delete(ACCESS)
        await pair.ended(ACCESS)
        await pair.delete(ROLE)
        await pair.ended(ROLE)


@pytest.mark.complete
async def test_an_access_that_may_not_be_revoked_is_released_after_a_day(env: WorkflowEnvironment) -> None:
    async with at_work(env) as pair:
        await pair.ready()
        pair.refused = {RevokeAccess.activity}
        began: datetime = await env.get_current_time()
        await pair.delete(ACCESS)
        await pair.until(lambda: RevokeAccess.activity in pair.made)
        await env.sleep(GIVE_UP_AFTER - timedelta(minutes=1))
        assert pair.access is not None
        await env.sleep(timedelta(minutes=2))
        await pair.ended(ACCESS)
        assert await env.get_current_time() >= began + GIVE_UP_AFTER
        await pair.delete(ROLE)
        await pair.ended(ROLE)
