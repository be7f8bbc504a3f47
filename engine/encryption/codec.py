"""AES-256-GCM over whole payloads, in the format of Temporal's own samples: `binary/encrypted` and the key's id.

Unencrypted payloads are read unchanged, so encryption can be turned on while processes run. A process without the key
fails the tasks that it cannot read; they are retried until it has the key.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from google.protobuf.message import DecodeError
from temporalio.api.common.v1 import Payload
from temporalio.converter import DataConverter, DefaultFailureConverterWithEncodedAttributes, PayloadCodec

from engine.encryption.keys import KeyRing
from engine.payload_converter import unencrypted
from engine.settings import Settings

ENCODING = b"binary/encrypted"
KEY_ID = "encryption-key-id"
NONCE_BYTES = 12


class Undecryptable(ValueError):  # noqa: N818
    pass


class EncryptionCodec(PayloadCodec):
    def __init__(self, keys: KeyRing) -> None:
        self._keys = keys

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        writing = self._keys.writing()
        return [_encrypted(payload, *writing) for payload in payloads] if writing else list(payloads)

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Decrypt payloads; unencrypted ones are returned unchanged.

        Raises:
            UnknownKey: there is no key with the id that a payload names.
            Undecryptable: a different key of that id encrypted the payload, or the payload was changed.
        """
        return [self._decrypted(payload) for payload in payloads]

    def _decrypted(self, payload: Payload) -> Payload:
        if payload.metadata.get("encoding") != ENCODING:
            return payload
        key_id = payload.metadata.get(KEY_ID, b"").decode(errors="replace")
        key = self._keys.reading(key_id)
        nonce, sealed = payload.data[:NONCE_BYTES], payload.data[NONCE_BYTES:]
        try:
            return Payload.FromString(AESGCM(key).decrypt(nonce, sealed, key_id.encode()))
        except (InvalidTag, ValueError, DecodeError) as error:
            raise Undecryptable(
                f"the key {key_id!r} does not decrypt the data: a different key of this name encrypted it, or it was "
                "changed afterwards"
            ) from error


def data_converter(settings: Settings) -> DataConverter:
    """The data converter, which encrypts if the settings name keys. Raises KeysUnreadable.

    Every process must use it: a process with a different data converter fails workflow tasks for ever.
    """
    if not settings.temporal_keys:
        return unencrypted
    return dataclasses.replace(
        unencrypted,
        payload_codec=EncryptionCodec(KeyRing(Path(settings.temporal_keys))),
        failure_converter_class=DefaultFailureConverterWithEncodedAttributes,
    )


def _encrypted(payload: Payload, key_id: str, key: bytes) -> Payload:
    nonce = os.urandom(NONCE_BYTES)
    sealed = AESGCM(key).encrypt(nonce, payload.SerializeToString(), key_id.encode())
    return Payload(metadata={"encoding": ENCODING, KEY_ID: key_id.encode()}, data=nonce + sealed)
