"""Prepares a deployment for Perdure: `python -m localcloud.seed CLOUD...`, run by every `up` until it succeeds.

Existing objects are left unchanged, since people edit them; CustomResourceDefinitions and roles follow the installed
version. In observe mode nothing is written to a user's own cluster.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from domain.accounts import constants
from domain.built_in_kinds import BUILT_IN, CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, NAMESPACE, SECRET
from domain.custom_resources import all_crds
from domain.identity import Kind
from domain.operator_domain import DEFAULT as DEFAULT_DOMAIN
from engine.errors import Absent, Conflict, Unavailable
from engine.kube.api import KubeApi
from engine.kube.json import JsonObject, sequence, text
from engine.settings import Settings
from localcloud.aws.contract import IMAGE_OWNER, PAYER_ACCOUNT_ID
from localcloud.cluster_api import definitions
from localcloud.services import LOAD_BALANCER_NAMESPACE, LOAD_BALANCER_SECRET
from localcloud.state import Cloud

if TYPE_CHECKING:
    from mypy_boto3_organizations import OrganizationsClient

BASE_UNIT = "base"
DEFAULT_POOL = "default"
ACCOUNT_LIMIT = 1000
SHARD = "local"

# In a checkout `rbac` is a link to `deploy/rbac`; a wheel contains the files.
CLAIMS_RBAC = Path(__file__).with_name("rbac") / "claims.yaml"

_ESTABLISHED_SECONDS = 30.0
_IDENTITY = ("apiVersion", "kind", "metadata")

log = logging.getLogger("seed")


async def seed_cluster(kube: KubeApi, *namespaces: str) -> None:
    listed = (await kube.list(CUSTOM_RESOURCE_DEFINITION)).items
    there = {text(definition, "metadata", "name"): definition for definition in listed if _is_established(definition)}
    differ = [each for each in all_crds(kube.operator_domain) if not _holds(there.get(_name(each)), _applied(each))]
    await asyncio.gather(*(_apply(kube, CUSTOM_RESOURCE_DEFINITION, definition) for definition in differ))
    for definition in differ:  # sequentially, since all at once would overload the server
        await _await_established(kube, _name(definition))
    for name in (*namespaces, constants.OPERATOR_NAMESPACE):
        await _create_if_absent(kube, NAMESPACE, "", {"metadata": {"name": name}})


async def seed_cluster_api(kube: KubeApi) -> None:
    for definition in definitions():
        await _create_if_absent(kube, CUSTOM_RESOURCE_DEFINITION, "", definition)
        await _await_established(kube, text(definition, "metadata", "name"))


async def seed_rights(kube: KubeApi) -> None:
    written = CLAIMS_RBAC.read_text().replace(DEFAULT_DOMAIN, kube.operator_domain)
    objects: list[JsonObject] = list(yaml.safe_load_all(written))
    await asyncio.gather(*(_apply(kube, BUILT_IN[text(obj, "kind")], obj) for obj in objects))


async def seed_aws(kube: KubeApi) -> None:
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
    if await _exists(kube, CONFIG_MAP, namespace, constants.CONFIG_MAP):
        return  # only the ConfigMap needs the organization
    root, base = await asyncio.to_thread(ensure_organization)
    await _create_if_absent(
        kube,
        CONFIG_MAP,
        namespace,
        {"metadata": {"name": constants.CONFIG_MAP}, "data": operator_configuration(root, base)},
    )


async def seed_openstack(kube: KubeApi) -> None:
    cloud = await asyncio.to_thread(_project)
    await _create_if_absent(kube, NAMESPACE, "", {"metadata": {"name": LOAD_BALANCER_NAMESPACE}})
    # Addresses may change between runs of `up`, so the Secret is updated.
    secret: JsonObject = {
        "metadata": {"name": LOAD_BALANCER_SECRET},
        "stringData": {"cloudprovider.conf": provider_configuration(cloud)},
    }
    try:
        await kube.patch(SECRET, LOAD_BALANCER_NAMESPACE, LOAD_BALANCER_SECRET, secret)
    except Absent:
        await _create_if_absent(kube, SECRET, LOAD_BALANCER_NAMESPACE, secret)


def _project() -> Mapping[str, Any]:
    clouds: Mapping[str, Any] = yaml.safe_load(Path(os.environ["OS_CLIENT_CONFIG_FILE"]).read_text())["clouds"]
    project: Mapping[str, Any] = clouds[os.environ["OS_CLOUD"]]
    return project


def provider_configuration(cloud: Mapping[str, Any]) -> str:
    auth = cloud["auth"]
    configuration = {
        "auth-url": auth["auth_url"],
        "username": auth["username"],
        "password": auth["password"],
        "domain-id": auth["user_domain_id"],
        "project-name": auth["project_name"],
        "region": cloud["region_name"],
    }
    return "\n".join(("[Global]", *(f"{key} = {value}" for key, value in configuration.items()), ""))


def operator_configuration(root: str, base: str) -> dict[str, str]:
    return {
        "account-limit": str(ACCOUNT_LIMIT),
        "root": root,
        "base": base,
        "accountpool": yaml.safe_dump({DEFAULT_POOL: {"default": True}}),
        "ami-owner": IMAGE_OWNER,
        "shard-name": SHARD,
        "support-jump-role": f"arn:aws:iam::{PAYER_ACCOUNT_ID}:role/RH-Technical-Support-Access",
        "sts-jump-role": f"arn:aws:iam::{PAYER_ACCOUNT_ID}:role/RH-Account-Jump",
        "payer-account-ids": PAYER_ACCOUNT_ID,
    }


def ensure_organization() -> tuple[str, str]:
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


async def _apply(kube: KubeApi, kind: Kind, obj: JsonObject) -> None:
    """Patch the object except its metadata, which others may have extended; create the object if it does not exist."""
    try:
        await kube.patch(kind, "", _name(obj), _applied(obj))
    except Absent:
        await kube.create(kind, obj)
        log.info("created %s %s", kind.name, _name(obj))


def _name(obj: JsonObject) -> str:
    return text(obj, "metadata", "name")


def _applied(obj: JsonObject) -> JsonObject:
    return {field: value for field, value in obj.items() if field not in _IDENTITY}


def _holds(found: object, wanted: object) -> bool:
    """Whether the found value contains the wanted one. Lists must be equal; in maps the server may add defaults."""
    if not isinstance(found, Mapping) or not isinstance(wanted, Mapping):
        return found == wanted
    return all(name in found and _holds(found[name], value) for name, value in wanted.items())


async def _await_established(kube: KubeApi, name: str) -> None:
    """Wait until the API server serves the definition's kind. Before that, it answers creations with 404."""
    async with asyncio.timeout(_ESTABLISHED_SECONDS):
        while not _is_established(await kube.get(CUSTOM_RESOURCE_DEFINITION, "", name)):  # noqa: ASYNC110 - the server has no event for us
            await asyncio.sleep(0.05)


def _is_established(definition: JsonObject) -> bool:
    return any(
        text(condition, "type") == "Established" and text(condition, "status") == "True"
        for condition in sequence(definition, "status", "conditions")
    )


async def _exists(kube: KubeApi, kind: Kind, namespace: str, name: str) -> bool:
    try:
        await kube.get(kind, namespace, name)
    except Absent:
        return False
    return True


async def _create_if_absent(kube: KubeApi, kind: Kind, namespace: str, obj: JsonObject) -> None:
    try:
        await kube.create(kind, obj, namespace)
    except Conflict:
        return
    log.info("created %s %s", kind.name, _name(obj))


async def seed(clouds: tuple[Cloud, ...], *, foreign_cluster: bool) -> None:
    # Observe mode needs prepared objects to observe, so our own cluster is written to.
    settings = Settings() if foreign_cluster else Settings(mode="act")
    if settings.observing:
        log.info("observe mode: nothing is written to the cluster")
        return
    async with await KubeApi.open(settings, "seed") as kube:
        await seed_cluster(kube, settings.watch_lease_namespace, settings.claims_namespace)
        if not foreign_cluster:
            await seed_rights(kube)
            if settings.instances_queues:
                await seed_cluster_api(kube)
        if Cloud.AWS in clouds and "AWS_ACCESS_KEY_ID" in os.environ:
            await seed_aws(kube)
        if Cloud.OPENSTACK in clouds and "OS_CLIENT_CONFIG_FILE" in os.environ:
            await seed_openstack(kube)


def main() -> None:
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
