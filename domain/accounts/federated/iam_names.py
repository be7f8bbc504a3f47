"""Names of federated access's objects in a customer's account.

IAM's limits (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html): a role's name has at most 64
characters, a policy's name at most 128. Both consist of letters, digits and `+=,.@_-`.
"""

from __future__ import annotations

import re

from domain.accounts.constants import SUFFIX_LENGTH
from domain.accounts.federated.resources import AWSFederatedAccountAccess
from domain.accounts.naming import suffix_of

_NAME = re.compile(r"[\w+=,.@-]+", re.ASCII)
LONGEST_ROLE, LONGEST_POLICY = 64, 128
_CONSOLES = {"aws-us-gov": "signin.amazonaws-us-gov.com"}


def uid_of(access: AWSFederatedAccountAccess) -> str:
    """The six-character suffix of the access's names in AWS: the recorded one, else derived from the object's uid."""
    return access.place.uid or suffix_of(access.metadata.uid)


def named(name: str, uid: str) -> str:
    return f"{name}-{uid}"


def console_url(partition: str, account_id: str, role: str) -> str:
    host = _CONSOLES.get(partition, "signin.aws.amazon.com")
    return f"https://{host}/switchrole?account={account_id}&roleName={role}"


def name_fault(name: str, longest: int) -> str:
    """Why IAM would refuse a name that consists of `name` and a uid; empty if IAM would accept it."""
    room = longest - SUFFIX_LENGTH - 1
    if len(name) > room:
        return f"{name!r} has {len(name)} characters; at most {room} fit, because Perdure appends a uid"
    return "" if _NAME.fullmatch(name) else f"{name!r} is not a valid name in IAM: letters, digits and +=,.@_- only"
