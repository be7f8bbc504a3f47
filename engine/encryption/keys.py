"""The keys that encrypt payloads: files in a directory, such as a mounted Secret.

A file's name is the key's id, its content 32 random bytes in base64. All keys decrypt. The file `current` names
the key that encrypts; if it is empty, no key encrypts. Without this file, the key whose id sorts last encrypts.

The directory is read again every ten seconds, and at once if a payload names an unknown key. If reading fails, the old
keys stay in use. A key may encrypt 2^32 payloads with random nonces (NIST SP 800-38D, section 8.3).
"""

from __future__ import annotations

import base64
import binascii
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path

CURRENT = "current"
KEY_BYTES = 32
REREAD_SECONDS = 10.0

log = logging.getLogger(__name__)


class KeysUnreadable(ValueError):  # noqa: N818
    """The message says which file is wrong and why, never its content."""


class UnknownKey(ValueError):  # noqa: N818
    pass


class KeyRing:
    def __init__(self, directory: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._directory = directory
        self._clock = clock
        self._keys, self._writing = read_keys(directory)
        self._read_at = clock()

    def writing(self) -> tuple[str, bytes] | None:
        """The id and key to encrypt with; None if nothing is encrypted."""
        if self._clock() >= self._read_at + REREAD_SECONDS:
            self._read_again()
        return (self._writing, self._keys[self._writing]) if self._writing else None

    def reading(self, key_id: str) -> bytes:
        """The key with this id; raises UnknownKey if there is none."""
        if key_id not in self._keys:
            self._read_again()
        try:
            return self._keys[key_id]
        except KeyError:
            known = ", ".join(sorted(self._keys))
            raise UnknownKey(
                f"the payload was encrypted with the key {key_id!r}, but {self._directory} only has the keys: {known}"
            ) from None

    def _read_again(self) -> None:
        self._read_at = self._clock()
        before = self._writing
        try:
            self._keys, self._writing = read_keys(self._directory)
        except KeysUnreadable as error:
            log.warning("the encryption keys could not be read again; the old keys stay in use: %s", error)
            return
        if self._writing != before:
            log.info("encrypting with key %s instead of %s", self._writing or "no key", before or "no key")


def read_keys(directory: Path) -> tuple[Mapping[str, bytes], str]:
    """The keys by id, and the id of the key that encrypts (empty if none does).

    Raises KeysUnreadable: a file is not a key, `current` names an unknown key, or there are no keys.
    """
    keys: dict[str, bytes] = {}
    current: str | None = None
    try:
        # A mounted Secret keeps its versions under names that begin with two dots.
        files = sorted(each for each in directory.iterdir() if not each.name.startswith(".") and each.is_file())
        for file in files:
            if file.name == CURRENT:
                current = file.read_text().strip()
            else:
                keys[file.name] = _key(file)
    except (OSError, UnicodeDecodeError) as error:
        raise KeysUnreadable(f"the keys in {directory} cannot be read: {error}") from error
    if not keys:
        raise KeysUnreadable(f"{directory} holds no key: create one file per key, with 32 random bytes in base64")
    if current is None:
        return keys, max(keys)
    if current and current not in keys:
        raise KeysUnreadable(f"{directory / CURRENT} names {current!r}, but the keys are: {', '.join(sorted(keys))}")
    return keys, current


_ADVICE = "create a key with `openssl rand -base64 32`"


def _key(file: Path) -> bytes:
    try:
        key = base64.b64decode(file.read_bytes().strip(), validate=True)
    except (binascii.Error, ValueError):
        raise KeysUnreadable(f"{file} is not base64; {_ADVICE}") from None
    if len(key) != KEY_BYTES:
        raise KeysUnreadable(f"{file} holds {len(key)} bytes and not {KEY_BYTES}; {_ADVICE}")
    return key
