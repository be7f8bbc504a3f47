from __future__ import annotations

import os

LOOPBACK = "127.0.0.1"

HOME = os.environ["PERDURE_OPENSTACK_HOME"]
"""The directory of the deployment's OpenStack, which holds its configuration and its keys."""


def urls() -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in os.environ["PERDURE_OPENSTACK_URLS"].split(","))


def password() -> str:
    return os.environ["PERDURE_OPENSTACK_PASSWORD"]
