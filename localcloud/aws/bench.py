"""`python -m localcloud.aws.bench`: the emulator's cost, measured from outside with boto3."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import psutil
from botocore.config import Config as BotoConfig

from localcloud.aws.contract import DEFAULT_REGIONS, IMAGE_OWNER
from localcloud.aws.control import Emulator


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m localcloud.aws.bench")
    parser.add_argument("--accounts", type=int, default=10)
    parser.add_argument("--threads", type=int, default=8)
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder, _emulator(Path(folder)) as (endpoint, process):
        _measure(endpoint, process, arguments.accounts, arguments.threads)
    return 0


def _measure(endpoint: str, process: psutil.Process, account_total: int, threads: int) -> None:
    emulator = Emulator(endpoint)
    health = emulator.health()
    payer = {"aws_access_key_id": health.access_key_id, "aws_secret_access_key": health.secret_access_key}
    with _timed("create accounts", process, emulator):
        accounts = _create_accounts(endpoint, payer, account_total)
    regional = [_client("ec2", endpoint, credentials, region) for credentials in accounts for region in DEFAULT_REGIONS]
    with _timed("first use of every region", process, emulator), ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda ec2: ec2.describe_instances(), regional))
    with _timed("4 calls in every region", process, emulator), ThreadPoolExecutor(threads) as pool:
        list(pool.map(_use_region, regional))
    with _timed("save", process, emulator):
        emulator.save()
    megabytes = process.memory_info().rss / 2**20
    print(f"resident memory {megabytes:.0f} MB; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


def _create_accounts(endpoint: str, payer: dict[str, str], total: int) -> list[dict[str, str]]:
    organizations, sts = _client("organizations", endpoint, payer), _client("sts", endpoint, payer)
    credentials = []
    for number in range(total):
        creation = organizations.create_account(AccountName=f"bench-{number}", Email=f"bench+{number}@example.com")
        status = organizations.describe_create_account_status(
            CreateAccountRequestId=creation["CreateAccountStatus"]["Id"]
        )
        account = status["CreateAccountStatus"]["AccountId"]
        role = f"arn:aws:iam::{account}:role/OrganizationAccountAccessRole"
        session = sts.assume_role(RoleArn=role, RoleSessionName="bench")["Credentials"]
        credentials.append(
            {
                "aws_access_key_id": session["AccessKeyId"],
                "aws_secret_access_key": session["SecretAccessKey"],
                "aws_session_token": session["SessionToken"],
            }
        )
    return credentials


def _use_region(ec2: Any) -> None:
    ec2.describe_instances(Filters=[{"Name": "instance-state-name", "Values": ["running"]}])
    images = ec2.describe_images(Owners=[IMAGE_OWNER], ExecutableUsers=["all"])["Images"]
    launched = ec2.run_instances(
        ImageId=images[-1]["ImageId"],
        InstanceType="t3.micro",
        MinCount=1,
        MaxCount=1,
        BlockDeviceMappings=[
            {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 10, "Encrypted": True, "DeleteOnTermination": True}}
        ],
    )
    ec2.terminate_instances(InstanceIds=[launched["Instances"][0]["InstanceId"]])


def _client(service: str, endpoint: str, credentials: dict[str, str], region: str = "us-east-1") -> Any:
    config = BotoConfig(retries={"total_max_attempts": 1})
    session = boto3.session.Session(region_name=region)
    return session.client(service, endpoint_url=endpoint, config=config, **credentials)  # type: ignore[call-overload]


@contextmanager
def _timed(what: str, process: psutil.Process, emulator: Emulator) -> Iterator[None]:
    calls, cpu, began = emulator.ledger().total(), sum(process.cpu_times()[:2]), time.perf_counter()
    yield
    seconds, cpu = time.perf_counter() - began, sum(process.cpu_times()[:2]) - cpu
    calls = emulator.ledger().total() - calls
    per_call = f", {cpu / calls * 1000:.1f} ms of the emulator's CPU per call" if calls else ""
    print(f"{what}: {seconds:.2f} s, {calls} calls, {cpu:.2f} s of the emulator's CPU{per_call}")


@contextmanager
def _emulator(folder: Path) -> Iterator[tuple[str, psutil.Process]]:
    command = [sys.executable, "-m", "localcloud.aws", "--port", "0", "--state", str(folder / "aws.db")]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+", process.stdout.readline())
            assert found is not None, "the emulator did not start"
            yield found.group(0), psutil.Process(process.pid)
        finally:
            process.terminate()


if __name__ == "__main__":
    sys.exit(main())
