"""Customers as callers of AWS, with the keys in a Secret that a custom resource names.

The Secret is read for every activity, since a customer may change or revoke keys at any time.
"""

from __future__ import annotations

from botocore.credentials import ReadOnlyCredentials

from activities.aws.session import Services, Sessions, keys_in
from domain.resource import SecretReference
from engine.errors import Denied

WRONG_ACCOUNT = "IdentityMismatch"


class Customer(Services):
    def __init__(self, sessions: Sessions, secret: SecretReference, partition: str) -> None:
        """Raises Denied if the Secret or its keys are missing."""
        name = f"the customer of Secret {secret.namespace}/{secret.name}"
        super().__init__(sessions.clients, name, partition=partition, observing=sessions.observing)
        self._keys = customers_keys(sessions, secret.namespace, secret.name)

    def credential(self) -> ReadOnlyCredentials:
        return self._keys


def customers_keys(sessions: Sessions, namespace: str, name: str) -> ReadOnlyCredentials:
    return keys_in(sessions.kube, namespace, name, "the customer's keys")


def customer_in(sessions: Sessions, secret: SecretReference, partition: str, account_id: str) -> Customer:
    """The customer as a caller in this account. Raises Denied if the keys are missing or open another account, or if
    the account is protected.
    """
    sessions.refuse_protected(account_id)
    found = Customer(sessions, secret, partition)
    opened = found.ask_identity().account_id
    if opened != account_id:
        raise Denied(
            f"the keys in Secret {secret.namespace}/{secret.name} open account {opened}, but this object was set up in "
            f"account {account_id}: nothing is changed. Restore keys of {account_id}, or create the object again.",
            code=WRONG_ACCOUNT,
        )
    return found
