"""Derived names, so that a repeated creation finds the existing object."""

from __future__ import annotations

from domain.accounts.constants import NAME_PREFIX, SUFFIX_LENGTH
from domain.names import SUFFIX_ALPHABET, derived_suffix


def suffix_of(*seed: str) -> str:
    return derived_suffix(*seed, length=SUFFIX_LENGTH)


def account_name(suffix: str) -> str:
    return f"{NAME_PREFIX}-{suffix}"


def iam_user_id(name: str, uid: str) -> str:
    """The id in the names of the IAM user and role: the suffix of a generated Account name, else one
    derived from the uid.
    """
    last = name.rsplit("-", 1)[-1]
    fits = len(last) == SUFFIX_LENGTH and set(last) <= set(SUFFIX_ALPHABET)
    return last if fits else suffix_of(uid)


def email_of(name: str, domain: str) -> str:
    """For example, osd-creds-mgmt-abc123 becomes osd-creds-mgmt+abc123@redhat.com."""
    head, dash, last = name.rpartition("-")
    return f"{head}+{last}@{domain}" if dash else f"{last}@{domain}"


def secret_of(account: str) -> str:
    return f"{account}-secret".lower()
