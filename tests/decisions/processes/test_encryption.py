"""Keys and the codec: what is written with one key is read by it alone; keys come and go; what is wrong is said."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from encryption_keys import add_key
from temporalio.api.common.v1 import Payload

from engine.encryption import EncryptionCodec, KeyRing, KeysUnreadable, UnknownKey, data_converter
from engine.encryption.codec import Undecryptable
from engine.encryption.keys import REREAD_SECONDS, read_keys
from engine.settings import Settings

TOLD = Payload(metadata={"encoding": b"json/plain"}, data=b'"the payer\'s name"')


class Clock:
    """Seconds that a test lets pass."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return add_key(tmp_path, "2026-05")


async def test_an_encrypted_payload_shows_nothing_and_comes_back_whole(keys: Path) -> None:
    codec = EncryptionCodec(KeyRing(keys))
    (hidden,) = await codec.encode([TOLD])
    assert b"payer" not in hidden.SerializeToString()
    assert hidden.metadata["encryption-key-id"] == b"2026-05"
    assert await codec.decode([hidden]) == [TOLD]


async def test_the_same_payload_never_looks_the_same_twice(keys: Path) -> None:
    codec = EncryptionCodec(KeyRing(keys))
    first, second = await codec.encode([TOLD, TOLD])
    assert first.data != second.data


async def test_a_payload_written_before_encryption_is_read(keys: Path) -> None:
    assert await EncryptionCodec(KeyRing(keys)).decode([TOLD]) == [TOLD]


async def test_a_new_key_writes_and_the_old_one_still_reads(keys: Path) -> None:
    clock = Clock()
    codec = EncryptionCodec(KeyRing(keys, clock))
    (before,) = await codec.encode([TOLD])
    add_key(keys, "2026-11")
    clock.now += REREAD_SECONDS
    (after,) = await codec.encode([TOLD])
    assert after.metadata["encryption-key-id"] == b"2026-11"
    assert await codec.decode([before, after]) == [TOLD, TOLD]


async def test_a_key_that_another_process_has_already_is_looked_for_at_once(keys: Path) -> None:
    late = EncryptionCodec(KeyRing(keys, Clock()))
    add_key(keys, "2026-11")
    (hidden,) = await EncryptionCodec(KeyRing(keys)).encode([TOLD])
    assert await late.decode([hidden]) == [TOLD]


async def test_a_key_that_is_gone_is_named(keys: Path) -> None:
    codec = EncryptionCodec(KeyRing(keys))
    (hidden,) = await codec.encode([TOLD])
    add_key(keys, "2026-11")
    (keys / "2026-05").unlink()
    with pytest.raises(UnknownKey, match=r"'2026-05'.*only has the keys: 2026-11"):
        await EncryptionCodec(KeyRing(keys)).decode([hidden])


async def test_another_key_of_the_same_name_does_not_open_it(keys: Path) -> None:
    (hidden,) = await EncryptionCodec(KeyRing(keys)).encode([TOLD])
    add_key(keys, "2026-05")
    with pytest.raises(Undecryptable, match="2026-05"):
        await EncryptionCodec(KeyRing(keys)).decode([hidden])


async def test_a_payload_changed_on_the_way_is_refused(keys: Path) -> None:
    codec = EncryptionCodec(KeyRing(keys))
    (hidden,) = await codec.encode([TOLD])
    hidden.data = hidden.data[:-1] + bytes([hidden.data[-1] ^ 1])
    with pytest.raises(Undecryptable):
        await codec.decode([hidden])


async def test_an_empty_choice_reads_and_writes_nothing_encrypted(keys: Path) -> None:
    (hidden,) = await EncryptionCodec(KeyRing(keys)).encode([TOLD])
    (keys / "current").write_text("\n")
    codec = EncryptionCodec(KeyRing(keys))
    assert await codec.encode([TOLD]) == [TOLD]
    assert await codec.decode([hidden]) == [TOLD]


def test_a_choice_goes_before_the_order_of_names(keys: Path) -> None:
    add_key(keys, "2026-11")
    assert read_keys(keys)[1] == "2026-11"
    (keys / "current").write_text("2026-05\n")
    assert read_keys(keys)[1] == "2026-05"


def test_a_mounted_secrets_own_directories_are_no_keys(keys: Path) -> None:
    version = keys / "..2026_11_22"
    version.mkdir()
    (keys / "..data").symlink_to(version)
    assert set(read_keys(keys)[0]) == {"2026-05"}


async def test_a_directory_that_cannot_be_read_for_a_while_leaves_the_keys(
    keys: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    ring = KeyRing(keys, clock)
    before = ring.writing()
    (keys / "2026-11").write_text("half of it")
    clock.now += REREAD_SECONDS
    assert ring.writing() == before
    assert "the old keys stay in use" in caplog.text


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("2026-11", "no base64!", "is not base64"),
        ("2026-11", base64.b64encode(b"short").decode(), "holds 5 bytes and not 32"),
        ("current", "2025-11", "names '2025-11', but the keys are: 2026-05"),
    ],
)
def test_a_malformed_key_is_reported_without_its_content(keys: Path, name: str, content: str, text: str) -> None:
    (keys / name).write_text(content)
    with pytest.raises(KeysUnreadable, match=text):
        KeyRing(keys)


def test_no_keys_at_all_are_no_encryption_that_quietly_is_none(tmp_path: Path) -> None:
    with pytest.raises(KeysUnreadable, match="holds no key"):
        data_converter(Settings(temporal_keys=str(tmp_path)))
    with pytest.raises(KeysUnreadable, match="cannot be read"):
        data_converter(Settings(temporal_keys=str(tmp_path / "absent")))
    assert data_converter(Settings()).payload_codec is None
