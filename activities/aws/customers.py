"""Customers as callers: the holders of the keys in a Secret that a custom resource names.

The Secret is read for every activity and never kept: a customer changes or takes back its keys when it likes. Nothing
tells what account they open but AWS, which is asked; the payer's own account and protected ones are refused, whoever's
keys open them.
"""

from __future__ import annotations

from botocore.credentials import ReadOnlyCredentials

from activities.aws.clients import Clients
from activities.aws.session import NO_CREDENTIALS, Services, Sessions, secret_content
from domain.resource import SecretReference
from engine.errors import Absent, Denied
from engine.kube import SECRET

ACCESS_KEY_ID, SECRET_ACCESS_KEY, SESSION_TOKEN = "aws_access_key_id", "aws_secret_access_key", "aws_session_token"
WRONG_ACCOUNT = "IdentityMismatch"


class Customer(Services):
    """Whoever has these keys."""

    def __init__(
        self, clients: Clients, keys: ReadOnlyCredentials, name: str, *, partition: str, observing: bool
    ) -> None:
        super().__init__(clients, name, observing=observing)
        self.partition = partition
        self._keys = keys

    def credential(self) -> ReadOnlyCredentials:
        """The Secret's keys."""
        return self._keys

    def account_id(self) -> str:
        """The account that the keys open, as AWS says."""
        return self.ask_identity().account_id


def customer(sessions: Sessions, secret: SecretReference, partition: str) -> Customer:
    """The holder of a Secret's keys.

    Raises:
        Denied: there is no such Secret, or it lacks keys.
    """
    where = f"Secret {secret.namespace}/{secret.name}"
    try:
        found = sessions.kube.get(SECRET, secret.namespace, secret.name)
    except Absent as error:
        raise Denied(f"{where} with the customer's keys does not exist: create it", code=NO_CREDENTIALS) from error
    content = secret_content(found)
    key, value = content.get(ACCESS_KEY_ID, ""), content.get(SECRET_ACCESS_KEY, "")
    if not key or not value:
        raise Denied(f"{where} needs {ACCESS_KEY_ID} and {SECRET_ACCESS_KEY}", code=NO_CREDENTIALS)
    keys = ReadOnlyCredentials(key, value, content.get(SESSION_TOKEN) or None)
    return Customer(
        sessions.clients, keys, f"the customer of {where}", partition=partition, observing=sessions.observing
    )


def customer_in(sessions: Sessions, secret: SecretReference, partition: str, account_id: str) -> Customer:
    """The same, known to be in this account and no other.

    Raises:
        Denied: it is not, or nothing may be done there.
    """
    sessions.refuse_protected(account_id)
    found = customer(sessions, secret, partition)
    opened = found.account_id()
    if opened != account_id:
        raise Denied(
            f"the keys in Secret {secret.namespace}/{secret.name} open account {opened}, not {account_id}, where this "
            "was begun: nothing is done. Put back keys of that account, or create the object again.",
            code=WRONG_ACCOUNT,
        )
    return found
