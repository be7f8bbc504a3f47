from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping


def secret_data(content: Mapping[str, str]) -> dict[str, str]:
    return {name: base64.b64encode(value.encode()).decode() for name, value in content.items()}


def secret_content(secret: dict[str, object]) -> dict[str, str]:
    content = secret.get("data")
    found: dict[str, str] = {}
    for name, value in content.items() if isinstance(content, dict) else ():
        try:
            found[str(name)] = base64.b64decode(str(value), validate=True).decode().strip()
        except (binascii.Error, UnicodeDecodeError):
            continue
    return found
