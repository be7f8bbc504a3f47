"""What a fresh deployment needs before Perdure starts: `python -m localcloud.seed CLOUD...`, run once by every `up`.

The cluster gets our custom resource definitions and the namespaces that Perdure expects. For `aws` it gets what a user
of the replaced operator already has: the payer's Secret and the ConfigMap, filled with the ids of the emulator's own
organization, which is created when missing. Existing objects are left as they are, since people edit them; only the
definitions follow the installed version. The process is repeated by the supervisor until it ends well.

In observe mode nothing is written to a cluster of the user's own.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from typing import TYPE_CHECKING

import yaml

from domain.accounts import constants
from domain.custom_resources import all_crds
from domain.identity import Kind
from engine.errors import Absent, Conflict, Unavailable
from engine.kube.api import KubeApi
from engine.kube.json import JsonObject, mapping, sequence, text
from engine.kube.kinds import CONFIG_MAP, NAMESPACE, SECRET
from engine.settings import Settings
from localcloud.aws.contract import PAYER_ACCOUNT_ID
from localcloud.state import Cloud

if TYPE_CHECKING:
    from mypy_boto3_organizations import OrganizationsClient

BASE_UNIT = "base"
DEFAULT_POOL = "default"
ACCOUNT_LIMIT = 1000
# The owner of Red Hat's images, as the replaced operator's own ConfigMap has it; the emulator knows images of it.
AMI_OWNER = "309956199498"
SHARD = "local"

_CRD = Kind(
    name="CustomResourceDefinition",
    group="apiextensions.k8s.io",
    version="v1",
    plural="customresourcedefinitions",
    area="",
)
_ESTABLISHED_SECONDS = 30.0

log = logging.getLogger("seed")


async def seed_cluster(kube: KubeApi, namespace: str) -> None:
    """Apply the custom resource definitions and create the namespaces."""
    definitions = all_crds()
    await asyncio.gather(*(_apply_definition(kube, definition) for definition in definitions))
    await asyncio.gather(
        *(_await_established(kube, text(definition, "metadata", "name")) for definition in definitions)
    )
    for name in (namespace, constants.OPERATOR_NAMESPACE):
        await _create_if_absent(kube, NAMESPACE, "", {"metadata": {"name": name}})


async def seed_aws(kube: KubeApi) -> None:
    """Give the cluster the payer's keys and a ConfigMap that fits the emulator's organization."""
    namespace = constants.OPERATOR_NAMESPACE
    await _create_if_absent(
        kube,
        SECRET,
        namespace,
        {
            "metadata": {"name": constants.PAYER_SECRET},
            "type": "Opaque",
            "stringData": {
                "aws_access_key_id": os.environ["AWS_ACCESS_KEY_ID"],
                "aws_secret_access_key": os.environ["AWS_SECRET_ACCESS_KEY"],
            },
        },
    )
    root, base = await asyncio.to_thread(ensure_organization)
    await _create_if_absent(
        kube,
        CONFIG_MAP,
        namespace,
        {"metadata": {"name": constants.CONFIG_MAP}, "data": operator_configuration(root, base)},
    )


def operator_configuration(root: str, base: str) -> dict[str, str]:
    """The ConfigMap of a small, permissive installation; `root` and `base` are ids of the organization."""
    return {
        "account-limit": str(ACCOUNT_LIMIT),
        "root": root,
        "base": base,
        "accountpool": yaml.safe_dump({DEFAULT_POOL: {"default": True}}),
        "ami-owner": AMI_OWNER,
        "shard-name": SHARD,
        "support-jump-role": f"arn:aws:iam::{PAYER_ACCOUNT_ID}:role/RH-Technical-Support-Access",
        "sts-jump-role": f"arn:aws:iam::{PAYER_ACCOUNT_ID}:role/RH-Account-Jump",
        "payer-account-ids": PAYER_ACCOUNT_ID,
    }


def ensure_organization() -> tuple[str, str]:
    """The ids of the organization's root and of its unit `base`, both created when missing."""
    import boto3

    organizations: OrganizationsClient = boto3.client("organizations")
    try:
        organizations.describe_organization()
    except organizations.exceptions.AWSOrganizationsNotInUseException:
        organizations.create_organization(FeatureSet="ALL")
    root = organizations.list_roots()["Roots"][0]["Id"]
    for page in organizations.get_paginator("list_organizational_units_for_parent").paginate(ParentId=root):
        for unit in page["OrganizationalUnits"]:
            if unit["Name"] == BASE_UNIT:
                return root, unit["Id"]
    created = organizations.create_organizational_unit(ParentId=root, Name=BASE_UNIT)
    return root, created["OrganizationalUnit"]["Id"]


async def _apply_definition(kube: KubeApi, definition: JsonObject) -> None:
    name = text(definition, "metadata", "name")
    try:
        await kube.patch(_CRD, "", name, {"spec": mapping(definition, "spec")})
    except Absent:
        await kube.create(_CRD, definition)
        log.info("created the definition of %s", name)


async def _await_established(kube: KubeApi, name: str) -> None:
    """Until the API server serves the kind; creating an object earlier would be answered 404."""
    async with asyncio.timeout(_ESTABLISHED_SECONDS):
        while not _is_established(await kube.get(_CRD, "", name)):  # noqa: ASYNC110 - the server has no event for us
            await asyncio.sleep(0.05)


def _is_established(definition: JsonObject) -> bool:
    return any(
        text(condition, "type") == "Established" and text(condition, "status") == "True"
        for condition in sequence(definition, "status", "conditions")
    )


async def _create_if_absent(kube: KubeApi, kind: Kind, namespace: str, obj: JsonObject) -> None:
    try:
        await kube.create(kind, obj, namespace)
    except Conflict:
        return
    log.info("created %s %s", kind.name, text(obj, "metadata", "name"))


async def seed(clouds: tuple[Cloud, ...], *, foreign_cluster: bool) -> None:
    """Prepare the cluster of the environment for these clouds."""
    # Our own cluster is prepared in observe mode too, or there would be nothing to observe.
    settings = Settings() if foreign_cluster else Settings(mode="act")
    if settings.observing:
        log.info("observe mode: the cluster is left as it is")
        return
    async with await KubeApi.open(settings, "seed") as kube:
        await seed_cluster(kube, settings.watch_lease_namespace)
        if Cloud.AWS in clouds and "AWS_ENDPOINT_URL" in os.environ:
            await seed_aws(kube)


def main() -> None:
    """Prepare and end; what could not be reached is said in one line and tried again by the supervisor."""
    parser = argparse.ArgumentParser(description="Prepare a fresh deployment.")
    parser.add_argument("clouds", nargs="*", type=Cloud)
    parser.add_argument("--foreign-cluster", action="store_true", help="the cluster is the user's own")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    logging.getLogger("botocore").setLevel(logging.WARNING)
    try:
        asyncio.run(seed(tuple(arguments.clouds), foreign_cluster=arguments.foreign_cluster))
    except Unavailable as error:
        sys.exit(f"not prepared: {error}")


if __name__ == "__main__":
    main()
