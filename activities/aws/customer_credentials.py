"""Customers as callers of AWS, with the keys in a Secret that a custom resource names.

The Secret is read for every activity, since a customer may change or revoke keys at any time.
"""

from __future__ import annotations

from botocore.credentials import ReadOnlyCredentials

from activities.aws.clients import Clients
from activities.aws.session import Services, Sessions, keys_in
from domain.resource import SecretReference
from engine.errors import Denied

WRONG_ACCOUNT = "IdentityMismatch"


class Customer(Services):
    def __init__(
        self, clients: Clients, keys: ReadOnlyCredentials, name: str, *, partition: str, observing: bool
    ) -> None:
        super().__init__(clients, name, observing=observing)
        self.partition = partition
        self._keys = keys

    def credential(self) -> ReadOnlyCredentials:
        return self._keys

    def account_id(self) -> str:
        return self.ask_identity().account_id


def customer(sessions: Sessions, secret: SecretReference, partition: str) -> Customer:
    """The customer as a caller; raises Denied without the Secret or its keys."""
    where = f"Secret {secret.namespace}/{secret.name}"
    keys = keys_in(sessions.kube, secret.namespace, secret.name, "the customer's keys")
    return Customer(
        sessions.clients, keys, f"the customer of {where}", partition=partition, observing=sessions.observing
    )


def customer_in(sessions: Sessions, secret: SecretReference, partition: str, account_id: str) -> Customer:
    """The customer as a caller in this account. Raises Denied if the keys are missing or open another account, or if
    the account is protected.
    """
    sessions.refuse_protected(account_id)
    found = customer(sessions, secret, partition)
    opened = found.account_id()
    if opened != account_id:
        raise Denied(
            f"the keys in Secret {secret.namespace}/{secret.name} open account {opened}, not {account_id}, where this "
            "object was set up: nothing is changed. Restore keys of that account, or create the object again.",
            code=WRONG_ACCOUNT,
        )
    return found
