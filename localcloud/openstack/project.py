"""Reads the local OpenStack as a project's user, without Perdure's OpenStack client."""

from __future__ import annotations

from typing import Any

import yaml
from keystoneauth1.identity.v3 import Password
from keystoneauth1.session import Session

from localcloud.deployment import Deployment
from localcloud.openstack.configuration import CLOUD


def project_session(deployment: Deployment, cloud: str = CLOUD) -> Session:
    with open(deployment.env()["OS_CLIENT_CONFIG_FILE"], encoding="utf-8") as file:
        auth = yaml.safe_load(file)["clouds"][cloud]["auth"]
    return Session(
        Password(
            auth_url=auth["auth_url"],
            username=auth["username"],
            password=auth["password"],
            user_domain_id=auth["user_domain_id"],
            project_name=auth["project_name"],
            project_domain_id=auth["user_domain_id"],
        )
    )


def listed(session: Session, service: str, route: str, plural: str) -> list[dict[str, Any]]:
    answer = session.get(route, endpoint_filter={"service_type": service, "interface": "public"})
    found: list[dict[str, Any]] = answer.json()[plural]
    return found
