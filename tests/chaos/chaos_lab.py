"""A whole installation to break: the local deployment's servers, and a worker and a watcher that can be killed alone.

The worker reaches the API server through a proxy, and AWS is the emulator, so that every call of it can be stopped at a
chosen moment. Work comes as *turns*, so that each case begins where the one before has ended:

    take: a claim is made; it gets the pool's one account, and the pool makes another
    give back: that claim is deleted and its account, full of a tenant's things, is cleaned; an Account is deleted

A take and a give-back together touch every lifecycle from its first to its last effect.
"""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from chaos_cluster import OPERATOR, secret_entry
from chaos_effects import BINDING, PLACING, AwsCall, Effect, KubeCall, Lifecycle, Message
from chaos_installation import Armed, Installation, Process, Record
from chaos_oracle import Expected, Oracle
from chaos_proxy import LATE_SECONDS, Break, Interception

from localcloud import services
from localcloud.aws.contract import Fault, FaultKind
from localcloud.aws.control import Emulator
from localcloud.instance_groups import image_of

REGIONS = ("us-east-1", "eu-west-1")
SETTLE_SECONDS = 150.0
# Looking at both sides costs the servers as much as a little work does.
LOOK_SECONDS = 1.0
AUDITED_EACH = 3
# A held call of AWS answers after so long, when its caller has gone; the worker would give up by itself after 30 s.
HOLD_SECONDS = 20.0
# Long enough to kill a server while the answer is awaited.
DELAY_SECONDS = 2.0

SETTINGS = {
    "PERDURE_ACCOUNTS_POLL": "1",
    "PERDURE_ACCOUNTS_CREATE_BUDGET": "100000",
    "PERDURE_WORKER_ORGANIZATION_RATE": "20",
    "PERDURE_DRAIN": "2",
}
EMULATED = {
    "regions": REGIONS,
    "opt_in_regions": (),
    "create_account_seconds": 0.5,
    "run_instances_seconds": 0.5,
    "case_seconds": 1,
}


@dataclass
class Tenant:
    """A claim and the account it has."""

    name: str
    account: str = ""
    account_id: str = ""
    littered: bool = False


class Lab(Installation):
    """The installation."""

    def __init__(self, state: Path, *, worker: dict[str, str] | None = None) -> None:
        command = ("worker", "--only", "accounts")
        super().__init__(state, services.SERVERS, SETTINGS | (worker or {}), command, reserve=True)
        self.emulator = Emulator(self.deployment.env()["AWS_ENDPOINT_URL"])
        self.emulator.config(**EMULATED)
        self.oracle = Oracle(self.cluster, self.emulator, self.workflows, self.worker.log)
        self.expected = Expected()
        self.tenant: Tenant | None = None
        self.spent: Tenant | None = None
        """Whose account is free again; its Account is deleted in the next give-back."""
        self.turns = 0
        self._settled = 0
        self.start()

    def close(self) -> None:
        """Stop all of it and remove its data."""
        super().close()
        self.emulator.close()

    def find_again(self) -> None:
        """After an `up`."""
        super().find_again()
        self.emulator.close()
        self.emulator = Emulator(self.deployment.env()["AWS_ENDPOINT_URL"])
        self.oracle = Oracle(self.cluster, self.emulator, self.workflows, self.worker.log)
        self.oracle.forget()

    def fill(self) -> None:
        """The pool that all turns work with: one account ahead."""
        config = {"data": {"account-limit": "10000"}}
        self.cluster.patch("configmaps", OPERATOR, "aws-account-operator-configmap", config)
        self.make_pool("default", 1)
        self.settle()

    def make_pool(self, name: str, size: int) -> None:
        """Create an AccountPool."""
        self.expected.pool_sizes[name] = size
        pool = {"metadata": {"name": name}, "spec": {"poolSize": size}}
        self.cluster.create("accountpools", OPERATOR, {**_typed("AccountPool"), **pool})

    def orphan_accounts(self) -> None:
        """Delete the AccountPool without its Accounts, while no worker would make others for it."""
        self.worker.kill()
        for each in self.cluster.list("accounts"):
            self.cluster.patch("accounts", OPERATOR, each["metadata"]["name"], {"metadata": {"ownerReferences": None}})
        self.cluster.delete("accountpools", OPERATOR, "default")
        self.worker.start()

    def adopt_accounts(self) -> None:
        """Create the AccountPool again, and make it the owner of its Accounts."""
        self.make_pool("default", 1)
        pool = self.cluster.get("accountpools", OPERATOR, "default")
        assert pool is not None
        owner = {
            "apiVersion": pool["apiVersion"],
            "kind": pool["kind"],
            "name": "default",
            "uid": pool["metadata"]["uid"],
        }
        for each in self.cluster.list("accounts"):
            patch = {"metadata": {"ownerReferences": [owner]}}
            self.cluster.patch("accounts", OPERATOR, each["metadata"]["name"], patch)

    # --- turns ---

    def ready_to(self, turn: str) -> None:
        """Take an undisturbed turn if it is the other one's."""
        if turn == "take" and self.tenant is not None:
            self.give_back()
            self.agree()
        if turn == "give back" and self.tenant is None:
            self.take()
            self.agree()

    def take(self) -> None:
        """Make a claim."""
        self.turns += 1
        self.oracle.forget()
        name = f"tenant-{self.turns}"
        self.tenant = Tenant(name)
        self.expected.claims = {name}
        self._claim(name)

    def take_and_die(self) -> None:
        """Make a claim; the worker dies when the pool's pass has bound it, before its completion has begun."""
        self.arm(PLACING, Break.BEFORE)
        bound = self.arm(BINDING, Break.AFTER)
        self.take()
        self.await_struck([bound])
        self.worker.kill()
        self.lift()

    def take_and_wait(self) -> str:
        """Make a claim; the account that its pool makes instead waits for a case that stays open: its id."""
        self.emulator.config(case_seconds=100_000)
        self.take()
        until = time.monotonic() + SETTLE_SECONDS
        while not (found := self._waiting()):
            assert time.monotonic() < until, "no Account waits for its support case\n" + self.story()
            time.sleep(LOOK_SECONDS)
        self.emulator.config(case_seconds=EMULATED["case_seconds"])
        return str(found["status"]["supportCaseID"])

    def delete_waiting(self) -> None:
        """Delete the Account that waits for its support case; the pool makes another."""
        found = self._waiting()
        assert found is not None
        name = found["metadata"]["name"]
        self.expected.gone, self.expected.disowned = {name}, {found["spec"]["awsAccountID"]}
        self.cluster.delete("accounts", OPERATOR, name)

    def _waiting(self) -> dict[str, Any] | None:
        """The Account with an open case."""
        found = ((each, each.get("status") or {}) for each in self.cluster.list("accounts"))
        pending = (each for each, status in found if status.get("state") == "PendingVerification")
        return next((each for each in pending if each["status"].get("supportCaseID")), None)

    def queue(self) -> str:
        """Make a second claim, which waits for the account that is made while the first has the pool's only one."""
        self.turns += 1
        name = f"tenant-{self.turns}"
        self.expected.claims = {*self.expected.claims, name}
        self._claim(name)
        return name

    def dismiss(self, name: str) -> None:
        """Delete a claim that queued."""
        self.expected.claims = self.expected.claims - {name}
        self.cluster.delete("accountclaims", name, name)

    def dismiss_who_queued(self) -> None:
        """Delete the claims that queued, and settle."""
        queued = self.expected.claims - {self.tenant.name if self.tenant else ""}
        for name in queued:
            self.dismiss(name)
        if queued:
            self.settle()

    def _claim(self, name: str) -> None:
        self.cluster.create("namespaces", "", {"metadata": {"name": name}})
        self.cluster.create("accountclaims", name, {**_typed("AccountClaim"), **_claim(name)})

    def give_back(self) -> None:
        """Fill the tenant's account with things; delete its claim, and delete the Account that was given back last."""
        self.turns += 1
        self._use()
        tenant, spent = self.tenant, self.spent
        assert tenant is not None
        self.oracle.forget()
        self.expected.claims = set()
        self.tenant, self.spent = None, tenant
        self.cluster.delete("accountclaims", tenant.name, tenant.name)
        if spent is not None:
            self.expected.gone = {spent.account}
            self.expected.disowned = {spent.account_id}
            self.cluster.delete("accounts", OPERATOR, spent.account)

    def target(self, lifecycle: Lifecycle) -> str | None:
        """The AWS account in which a lifecycle of a give-back acts; None where it is the payer or not yet known.

        Called before the turn.
        """
        if lifecycle is Lifecycle.RELEASE and self.tenant is not None:
            self._identify(self.tenant)
            return self.tenant.account_id
        if lifecycle is Lifecycle.DELETION and self.spent is not None:
            return self.spent.account_id
        return None

    def _identify(self, tenant: Tenant) -> None:
        claim = self.cluster.get("accountclaims", tenant.name, tenant.name)
        assert claim is not None
        tenant.account = claim["spec"]["accountLink"]
        account = self.cluster.get("accounts", OPERATOR, tenant.account)
        assert account is not None
        tenant.account_id = account["spec"]["awsAccountID"]

    def _use(self) -> None:
        """One of everything that a release cleans, made with the tenant's own key, once."""
        tenant = self.tenant
        assert tenant is not None
        if tenant.littered:
            return
        tenant.littered = True
        self._identify(tenant)
        secret = self.cluster.get("secrets", tenant.name, "aws-credentials")
        assert secret is not None
        session = boto3.Session(
            aws_access_key_id=secret_entry(secret, "aws_access_key_id"),
            aws_secret_access_key=secret_entry(secret, "aws_secret_access_key"),
            region_name=REGIONS[0],
        )
        litter(session, self.emulator.endpoint, tenant.name)

    # --- breaking ---

    def arm(self, effect: Effect, kind: Break) -> Armed:
        """Break the effect when it comes next."""
        call = effect.call
        if isinstance(call, Message):
            before = self.scheduled(effect.activity)
            return Armed(effect.name, lambda: bool(self.scheduled(effect.activity) - before))
        if isinstance(call, KubeCall):
            return Armed(effect.name, self.intercept(call.matches, kind).struck.is_set)
        if kind is Break.BEFORE:
            return self.arm_aws(effect, FaultKind.BEFORE, None)
        seconds = {Break.LATE: LATE_SECONDS, Break.DELAYED: DELAY_SECONDS}.get(kind, HOLD_SECONDS)
        return self.arm_aws(
            effect, FaultKind.DELAY, 1, delay_seconds=seconds, late_answer=kind not in (Break.LATE, Break.PARKED)
        )

    def fault(self, effect: Effect, kind: FaultKind, count: int | None, **more: object) -> Fault:
        """Break the effect's call of AWS, `count` times; what the emulator says of it."""
        call = effect.call
        assert isinstance(call, AwsCall)
        where = {"region": call.region, "containing": call.containing, "account": self.target(effect.lifecycle)}
        return self.emulator.fault(call.service, call.action, kind=kind, count=count, **where, **more)

    def arm_aws(self, effect: Effect, kind: FaultKind, count: int | None, **more: object) -> Armed:
        """Break the effect's call of AWS, `count` times."""
        fault = self.fault(effect, kind, count, **more)

        def struck() -> bool:
            return any(each.id == fault.id and each.hits for each in self.emulator.faults())

        return Armed(effect.name, struck)

    def lift(self) -> None:
        """Break nothing any more."""
        self.emulator.clear()
        super().lift()

    def wake_all(self) -> None:
        """`perdure wake --all`, for every kind."""
        for kind in ("AccountPool", "Account", "AccountClaim"):
            done = self.command("wake", kind, "--all")
            assert done.returncode == 0, done.stderr.decode()

    def ready_to_give_back_twice(self) -> None:
        """As `ready_to("give back")`, with an account that was given back before, to be deleted.

        The tenant has filled its account: what is broken next are Perdure's calls, not the tenant's.
        """
        self.ready_to("give back")
        if self.spent is None:
            self.give_back()
            self.agree()
            self.ready_to("give back")
        self._use()

    # --- settling ---

    def settle(self) -> float:
        """Wait until both sides agree and the audit finds nothing; how many seconds it took until they agreed.

        The audit costs as much as a start of the worker, and what it finds stays: it is asked each third time.

        Raises:
            AssertionError: with everything that is still wrong.
        """
        took = self.agree()
        self._settled += 1
        if self._settled % AUDITED_EACH:
            return took
        audited = self.audit()
        assert audited.returncode == 0, (audited.stdout + audited.stderr).decode()
        return took

    def agree(self, seconds: float = SETTLE_SECONDS) -> float:
        """As `Installation`; what was disowned is closed then."""
        took = super().agree(seconds)
        self._close_disowned()
        return took

    def violations(self) -> list[str]:
        """See `Installation`."""
        return self.oracle.violations(self.expected)

    def changes(self) -> object:
        """See `Installation`."""
        return self.emulator.ledger().mutating()

    def story(self) -> str:
        """What each lifecycle says about itself."""
        texts = [self.command("list").stdout.decode()]
        for kind, plural in (
            ("AccountPool", "accountpools"),
            ("Account", "accounts"),
            ("AccountClaim", "accountclaims"),
        ):
            for item in self.cluster.list(plural):
                path = f"{item['metadata']['namespace']}/{item['metadata']['name']}"
                texts.append(self.command("why", kind, path).stdout.decode())
        return "\n".join(texts)

    def _close_disowned(self) -> None:
        """What a later version will do by itself: close the AWS accounts of deleted Accounts."""
        for id_ in self.expected.disowned:
            self.payer().client("organizations", endpoint_url=self.emulator.endpoint).close_account(AccountId=id_)
        self.expected.disowned = set()
        self.expected.gone = set()

    def payer(self) -> boto3.Session:
        """The organization's own credentials."""
        env = self.deployment.env()
        return boto3.Session(
            aws_access_key_id=env["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=env["AWS_SECRET_ACCESS_KEY"],
            region_name=REGIONS[0],
        )

    def audit(self) -> subprocess.CompletedProcess[bytes]:
        """`perdure audit accounts`."""
        return self.command("audit", "accounts")


def litter(session: boto3.Session, endpoint: str, name: str) -> None:
    """One of everything that a tenant may leave behind, in the account of the session."""
    ec2 = session.client("ec2", endpoint_url=endpoint)
    ec2.run_instances(ImageId=image_of(ec2), MinCount=1, MaxCount=1)
    volume = ec2.create_volume(AvailabilityZone="us-east-1a", Size=1)["VolumeId"]
    ec2.create_snapshot(VolumeId=volume)
    subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
    balancers = session.client("elbv2", endpoint_url=endpoint)
    made = balancers.create_load_balancer(Name="theirs", Type="network", Subnets=[subnet])
    arn = made["LoadBalancers"][0]["LoadBalancerArn"]
    ec2.create_vpc_endpoint_service_configuration(NetworkLoadBalancerArns=[arn])
    far = session.client("ec2", endpoint_url=endpoint, region_name="eu-west-1")
    far.create_volume(AvailabilityZone="eu-west-1a", Size=1)
    s3 = session.client("s3", endpoint_url=endpoint)
    s3.create_bucket(Bucket=f"{name}-bucket")
    s3.put_bucket_versioning(Bucket=f"{name}-bucket", VersioningConfiguration={"Status": "Enabled"})
    for content in (b"1", b"2"):
        s3.put_object(Bucket=f"{name}-bucket", Key="x", Body=content)
    zones = session.client("route53", endpoint_url=endpoint)
    zone = zones.create_hosted_zone(Name=f"{name}.example", CallerReference=name)["HostedZone"]["Id"]
    record: Any = {"Name": f"www.{name}.example", "Type": "A", "TTL": 60, "ResourceRecords": [{"Value": "192.0.2.1"}]}
    change: Any = {"Changes": [{"Action": "CREATE", "ResourceRecordSet": record}]}
    zones.change_resource_record_sets(HostedZoneId=zone, ChangeBatch=change)


def _typed(kind: str) -> dict[str, str]:
    return {"apiVersion": "aws.managed.openshift.io/v1alpha1", "kind": kind}


def _claim(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {
            "legalEntity": {"id": f"entity-{name}", "name": f"Entity of {name}"},
            "awsCredentialSecret": {"name": "aws-credentials", "namespace": name},
            "aws": {"regions": [{"name": region} for region in REGIONS]},
            "accountLink": "",
        },
    }


__all__ = ["Armed", "Break", "Interception", "Lab", "Process", "Record", "Tenant", "litter"]
