"""A person's levers as a person uses them: the program, a worker, a cluster, Temporal and an emulated AWS, all real.

No watcher runs here, so an object's lifecycle does what a command makes it do, and nothing else.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import boto3
import pytest
from bare_accounts import make_account, remove_account
from product import Ended, answers, free_port, process, typed
from temporalio import workflow
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Worker
from waiting import eventually

from domain.accounts import ACCOUNT
from domain.carried_memory import Carry
from domain.control_annotations import ABANDONED, PAUSED, RETRIED, RETRY
from domain.identity import Key
from engine.kube import EVENT, NAMESPACE, KubeApi
from engine.kube.json import mapping, text
from engine.settings import Settings
from engine.temporal import wake
from localcloud.aws.control import Emulator
from localcloud.deployment import Deployment
from workers.registry import workflows_of
from workflows.accounts import AccountWorkflow

WORKFLOWS = workflows_of("accounts")

pytestmark = pytest.mark.integration

# A new one for each run: a reused deployment has lifecycles of earlier runs, which were not notified of the deletions.
NAMESPACE_NAME = f"cli-{secrets.token_hex(3)}"
FINALIZER = "finalizer.aws.managed.openshift.io"
# Of no account in the emulator, so that nothing can be done to it.
ACCOUNT_ID = "999900001111"

Json = dict[str, Any]


class Person:
    """A person at a terminal with a state directory, and the right to write objects by hand."""

    def __init__(self, deployment: Deployment, kube: KubeApi) -> None:
        self.deployment = deployment
        self.kube = kube

    async def perdure(self, *arguments: str, answer: str = "") -> Ended:
        return await typed(self.deployment, *arguments, answer=answer)

    async def finds(self, *what: str, name: str) -> list[Json]:
        """The list, once it has a lifecycle of this name: Temporal lists what has begun a moment later."""

        async def listed() -> list[Json]:
            rows: list[Json] = (await self.perdure("list", *what, "-o", "json")).json
            begun = [row for row in rows if row["name"] == name and row["phase"] != "NoLifecycle"]
            return rows if begun else []

        return cast("list[Json]", await eventually(listed, f"{name} is listed"))

    async def account(self, name: str, *, state: str = "", account_id: str = ACCOUNT_ID, **metadata: object) -> str:
        """A fresh Account; returns NAMESPACE/NAME."""
        await self.remove(name)
        return await make_account(self.kube, NAMESPACE_NAME, name, state, account_id, **metadata)

    async def read(self, name: str) -> Json:
        return await self.kube.get(ACCOUNT, NAMESPACE_NAME, name)

    async def annotation(self, name: str, annotation: str) -> str:
        return text(await self.read(name), "metadata", "annotations", annotation)

    async def remove(self, name: str) -> None:
        await remove_account(self.kube, NAMESPACE_NAME, name)

    async def events(self, name: str, reason: str) -> list[str]:
        """Of this very object: a reused deployment has those of earlier runs."""
        uid = text(await self.read(name), "metadata", "uid")
        found = await self.kube.list(EVENT, NAMESPACE_NAME, field_selector=f"involvedObject.uid={uid}")
        return [text(item, "message") for item in found.items if text(item, "reason") == reason]


@pytest.fixture(scope="module")
async def person(deployment: Deployment) -> AsyncIterator[Person]:
    async with await KubeApi.open(Settings(), "tests", deployment.env()["KUBECONFIG"]) as kube:
        await kube.create(NAMESPACE, {"metadata": {"name": NAMESPACE_NAME}})
        person = Person(deployment, kube)
        yield person
        for item in (await kube.list(ACCOUNT, NAMESPACE_NAME)).items:
            await person.remove(text(item, "metadata", "name"))
        await kube.delete(NAMESPACE, "", NAMESPACE_NAME)


@pytest.fixture(scope="module")
async def worker(person: Person) -> AsyncIterator[None]:
    async with process(person.deployment, "worker"):
        yield


async def test_an_object_without_a_lifecycle_is_listed_as_such(person: Person) -> None:
    name = await person.account("unwatched", state="Ready")
    listed = await person.perdure("list", "account", "-n", NAMESPACE_NAME)
    (row,) = [line for line in listed.out.splitlines() if name in line]
    assert "NoLifecycle" in row
    assert "is the watcher running?" in listed.err
    assert listed.code == 0


@pytest.mark.complete
async def test_without_a_worker_the_command_says_that_none_answers(person: Person) -> None:
    name = await person.account("unanswered", state="Ready")
    command = await person.perdure("why", "account", name)
    assert command.code == 1
    assert f"Account/{name}" in command.err
    # The first where another test's worker has polled in the last 90 seconds.
    assert any(line in command.err for line in ("is a worker running?", "none polls the task queue accounts"))
    assert "Traceback" not in command.err


@workflow.defn(name=ACCOUNT.name, sandboxed=False)
class OtherCode:
    """An Account's lifecycle as another version might have written it: it begins with a timer."""

    @workflow.run
    async def run(self, carry: Carry) -> None:
        await workflow.sleep(timedelta(days=1))

    @workflow.signal
    def wake(self) -> None:
        """Nothing."""


@pytest.mark.timeout(240)
@pytest.mark.complete
async def test_a_lifecycle_that_the_worker_cannot_replay_is_named_with_the_way_out(person: Person) -> None:
    name = await person.account("other-code", state="Ready", labels={"iamUserId": "h5n8vs"}, finalizers=[FINALIZER])
    uid = text(await person.read("other-code"), "metadata", "uid")
    key = Key(kind=ACCOUNT.name, namespace=NAMESPACE_NAME, name="other-code", uid=uid)
    address = person.deployment.env()["TEMPORAL_ADDRESS"]
    client = await Client.connect(address, data_converter=pydantic_data_converter)
    lifecycle = client.get_workflow_handle(key.workflow_id)

    others = [each for each in WORKFLOWS if each is not AccountWorkflow]

    async def has_slept() -> bool:
        return any(
            [event.HasField("timer_started_event_attributes") async for event in lifecycle.fetch_history_events()]
        )

    async with Worker(client, task_queue=ACCOUNT.area, workflows=[OtherCode, *others]):
        await wake(client, key)
        await eventually(has_slept, "the other code has begun")

    async def listed_as_stuck() -> bool:
        listed = await person.perdure("list", "account", "-n", NAMESPACE_NAME, "-o", "json")
        await wake(client, key)
        return [row["stuck"] for row in listed.json if row["name"] == "other-code"] == [True]

    async with process(person.deployment, "worker"):
        for question in ("retry", "why"):  # why alone makes no task fail, so the server has nothing to report
            command = await person.perdure(question, "account", name)
            assert command.code == 1
            assert "TMPRL1100" in command.err, question
            assert f"temporal workflow terminate --workflow-id '{key.workflow_id}'" in command.err
            assert f"perdure wake Account {name}" in command.err
            assert "is a worker running?" not in command.err
        await eventually(listed_as_stuck, "the list shows it", 90)
        await lifecycle.terminate("as advised")
        assert (await person.perdure("wake", "account", name)).code == 0
        assert "Ready" in (await person.perdure("why", "account", name)).out
    await person.remove("other-code")


async def test_a_person_asks_why_and_what_next(person: Person, worker: None) -> None:
    name = await person.account("healthy", state="Ready", labels={"iamUserId": "h5n8vq"}, finalizers=[FINALIZER])
    why = await person.perdure("why", "accounts", name, "-o", "json")
    assert (why.code, why.json["phase"], why.json["outcome"]) == (0, "Ready", "settled")
    plan = await person.perdure("plan", "account", name)
    assert plan.code == 0
    assert "would do" in plan.out
    assert "nothing" in plan.out
    await person.finds("account", "-n", NAMESPACE_NAME, "--phase", "ready", name="healthy")


async def test_retrying_what_is_well_is_refused_with_the_reason(person: Person, worker: None) -> None:
    name = await person.account("well", state="Ready", labels={"iamUserId": "h5n8vw"}, finalizers=[FINALIZER])
    refused = await person.perdure("retry", "account", name)
    assert refused.code == 1
    assert "nothing to retry" in refused.err
    assert not await person.annotation("well", RETRY)


async def test_retrying_what_failed_is_written_on_the_object(person: Person, worker: None) -> None:
    name = await person.account("failed", state="Failed", labels={"iamUserId": "h5n8vr"}, finalizers=[FINALIZER])
    command = await person.perdure("why", "account", name, "-o", "json")
    assert command.json["outcome"] == "failed"
    retried = await person.perdure("retry", "account", name, "--reason", "the quota was raised")
    assert retried.code == 0
    assert (await person.annotation("failed", RETRY)).endswith("ann: the quota was raised")


async def test_a_denial_that_is_given_time_to_settle_is_retried_when_asked(person: Person, worker: None) -> None:
    """The server tries it again by itself for some minutes, of which the lifecycle knows nothing."""
    environ = person.deployment.env()
    account_id = await member_account(environ, "osd-creds-mgmt-sett22")
    with Emulator(environ["AWS_ENDPOINT_URL"]) as emulator:
        denied = emulator.fault("iam", "CreateUser", kind="denied", account=account_id)
        labels = {"iamUserId": "sett22"}
        name = await person.account("settling", account_id=account_id, labels=labels, finalizers=[FINALIZER])

        async def settling() -> bool:
            command = await person.perdure("why", "account", name, "-o", "json")
            assert command.code == 0, command.err
            hindered = {(hindrance["action"], hindrance["type"]) for hindrance in command.json["hindrances"]}
            return hindered == {("aws.ensure_admin_user", "Unavailable")}

        await eventually(settling, "nothing but the denial hinders it, and the server tries it again")
        retried = await person.perdure("retry", "account", name, "--reason", "the policy is mended")
        assert retried.code == 0, retried.err
        assert "aws.ensure_admin_user" in retried.out
        emulator.clear(denied.id)

    async def honoured() -> bool:
        token = await person.annotation("settling", RETRY)
        return bool(token) and token == await person.annotation("settling", RETRIED)

    await eventually(honoured, "the retry is honoured once")
    await person.remove("settling")


async def test_a_pause_holds_until_it_is_resumed_and_is_recorded(person: Person, worker: None) -> None:
    name = await person.account("held")
    assert (await person.perdure("pause", "account", name, "--reason", "audit")).code == 0
    assert await person.annotation("held", PAUSED) == "true"
    assert await person.events("held", "Paused") == ["by ann: audit"]
    plan = await person.perdure("plan", "account", name, "-o", "json")
    assert "paused" in plan.json["hold"]
    assert plan.json["planned"]
    assert text(await person.read("held"), "status", "state") == ""
    listed = await person.perdure("list", "account", "-n", NAMESPACE_NAME)
    assert ["(paused)" in line for line in listed.out.splitlines() if name in line] == [True]
    assert "already paused" in (await person.perdure("pause", "account", name)).out

    assert (await person.perdure("resume", "account", name)).code == 0
    assert not await person.annotation("held", PAUSED)

    async def goes_on() -> bool:
        return FINALIZER in (await person.read("held"))["metadata"].get("finalizers", [])

    await eventually(goes_on, "the resumed account goes on")
    await person.remove("held")


@pytest.mark.complete
async def test_waking_all_gives_every_object_its_lifecycle(person: Person, worker: None) -> None:
    await person.account("sleeping", state="Ready", labels={"iamUserId": "h5n8vs"}, finalizers=[FINALIZER])
    woken = await person.perdure("wake", "--all")
    assert woken.code == 0, woken.err

    async def awake() -> bool:
        listed = await person.perdure("list", "account", "-n", NAMESPACE_NAME, "-o", "json")
        return [row["phase"] for row in listed.json if row["name"] == "sleeping"] == ["Ready"]

    await eventually(awake, "the woken account is Ready")
    assert [row["name"] for row in await person.finds("organization", name="aws")] == ["aws"]


async def test_an_object_that_is_not_being_deleted_cannot_be_abandoned(person: Person) -> None:
    name = await person.account("living", state="Ready", finalizers=[FINALIZER])
    refused = await person.perdure("abandon", "account", name, "--reason", "x", "--yes")
    assert refused.code == 1
    assert "is not being deleted" in refused.err
    assert "kubectl delete" in refused.err
    assert FINALIZER in (await person.read("living"))["metadata"]["finalizers"]


async def test_an_object_without_our_finalizer_cannot_be_abandoned(person: Person) -> None:
    name = await person.account("foreign", finalizers=["example.com/other"])
    refused = await person.perdure("abandon", "account", name, "--reason", "x", "--yes")
    assert refused.code == 1
    assert "example.com/other" in refused.err
    await person.remove("foreign")


async def test_abandoning_asks_first_and_says_what_stays(person: Person) -> None:
    name = await person.account("stuck", labels={"iamUserId": "h5n8vt"}, finalizers=[FINALIZER, "example.com/other"])
    await person.kube.patch(ACCOUNT, NAMESPACE_NAME, "stuck", {"metadata": {"annotations": {PAUSED: "true"}}})
    await person.kube.delete(ACCOUNT, NAMESPACE_NAME, "stuck")

    command = await person.perdure("abandon", "account", name, "--reason", "closed by AWS", answer="n\n")
    assert command.code == 1
    for left in (f"AWS account {ACCOUNT_ID}", "osdManagedAdmin-h5n8vt", "stuck-secret"):
        assert left in command.err
    assert FINALIZER in (await person.read("stuck"))["metadata"]["finalizers"]

    done = await person.perdure("abandon", "account", name, "--reason", "closed by AWS", "-o", "json", answer="y\n")
    assert done.code == 0
    assert done.json["still_held_by"] == ["example.com/other"]
    stored = await person.read("stuck")
    assert stored["metadata"]["finalizers"] == ["example.com/other"]
    note = json.loads(mapping(stored, "metadata", "annotations")[ABANDONED])  # type: ignore[arg-type]
    assert (note["who"], note["why"]) == ("ann", "closed by AWS")
    (message,) = await person.events("stuck", "Abandoned")
    assert "closed by AWS" in message
    assert ACCOUNT_ID in message
    await person.remove("stuck")


@pytest.mark.complete
async def test_a_lifecycle_that_has_ended_is_distinguished_from_one_that_never_was(
    person: Person, worker: None
) -> None:
    name = await person.account("shortlived", state="Ready", labels={"iamUserId": "h5n8vx"}, finalizers=[FINALIZER])
    assert (await person.perdure("why", "account", name)).code == 0
    await person.finds("account", "-n", NAMESPACE_NAME, name="shortlived")
    await person.remove("shortlived")
    listed = await person.finds("account", "-n", NAMESPACE_NAME, name="shortlived")
    assert [row["gone"] for row in listed if row["name"] == "shortlived"] == [True]

    async def ended() -> bool:
        await person.perdure("wake", "account", name)
        return "its last lifecycle ended" in (await person.perdure("why", "account", name)).err

    await eventually(ended, "the lifecycle ends with its object")
    never = await person.perdure("why", "account", f"{NAMESPACE_NAME}/never-was")
    assert (never.code, "lifecycle" in never.err) == (1, False)


async def test_a_temporal_that_is_down_is_named(person: Person, tmp_path: Path) -> None:
    exports = person.deployment.env() | {"TEMPORAL_ADDRESS": "127.0.0.1:9"}
    (tmp_path / "env").write_text("".join(f"export {name}={value}\n" for name, value in exports.items()))
    ended = await Person(Elsewhere(tmp_path), person.kube).perdure("list")
    assert ended.code == 1
    assert "Temporal at 127.0.0.1:9 does not answer" in ended.err
    assert "Traceback" not in ended.err


class Elsewhere(Deployment):
    """A state directory whose servers are not all there."""


@pytest.mark.complete
async def test_one_process_can_be_worker_and_watcher(person: Person) -> None:
    port = free_port()
    async with process(person.deployment, "run", port=port) as running:
        name = await person.account("seen", state="Ready", labels={"iamUserId": "h5n8vz"}, finalizers=[FINALIZER])

        async def looked_after() -> bool:
            listed = await person.perdure("list", "account", "-n", NAMESPACE_NAME, "-o", "json")
            phases = {f"{row['namespace']}/{row['name']}": row["phase"] for row in listed.json}
            return phases.get(name) == "Ready"

        await eventually(looked_after, "the watcher wakes and the worker looks")
        assert await answers(port, "/metrics")
        assert await answers(port, "/healthz")
    assert running.returncode == 0


async def test_an_audit_finds_what_has_no_owner_and_touches_nothing(person: Person) -> None:
    environ = person.deployment.env()
    orphan = "osd-creds-mgmt-zzzzzz"
    await member_account(environ, orphan)
    name = await person.account("accountless", state="Ready")
    with Emulator(environ["AWS_ENDPOINT_URL"]) as emulator:
        emulator.reset_ledger()
        audit = await person.perdure("audit", "accounts", "-o", "json")
        assert emulator.ledger().mutating() == 0
    assert audit.code == 1
    found = {finding["subject"]: finding["problem"] for finding in audit.json}
    assert [subject for subject in found if orphan in subject]
    assert ACCOUNT_ID in found[f"Account {name}"]
    await person.remove("accountless")


async def member_account(environ: dict[str, str], name: str) -> str:
    """The id of the AWS account of that name, made in the organization unless an earlier run has done so."""
    payer = aws(environ, "organizations")
    found: dict[str, str] = {}

    def look() -> bool:
        accounts = payer.get_paginator("list_accounts").paginate().build_full_result()["Accounts"]
        found.update({account["Name"]: account["Id"] for account in accounts})
        return name in found

    if not await asyncio.to_thread(look):
        await asyncio.to_thread(lambda: payer.create_account(AccountName=name, Email=f"{name}@example.com"))
    await eventually(lambda: asyncio.to_thread(look), f"the emulator makes {name}")
    return found[name]


def aws(environ: dict[str, str], service: str) -> Any:
    return boto3.client(
        service,
        endpoint_url=environ["AWS_ENDPOINT_URL"],
        aws_access_key_id=environ["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environ["AWS_SECRET_ACCESS_KEY"],
        region_name="us-east-1",
    )
