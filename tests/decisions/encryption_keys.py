"""Keys for payloads, as `openssl rand -base64 32` makes them."""

from __future__ import annotations

import base64
import os
from pathlib import Path


def add_key(directory: Path, key_id: str) -> Path:
    """A new key of that id in the directory, in the place of an older one; the directory."""
    directory.mkdir(exist_ok=True)
    (directory / key_id).write_bytes(base64.b64encode(os.urandom(32)) + b"\n")
    return directory
