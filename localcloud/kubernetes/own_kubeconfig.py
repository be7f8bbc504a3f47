from __future__ import annotations

from pathlib import Path

import yaml

from localcloud.state import replace_file

_FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


def place(kubeconfig: Path, own: Path) -> None:
    kubeconfig.unlink(missing_ok=True)
    try:
        written = yaml.safe_load(own.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        written = None  # the readers of the link report what is wrong
    resolved = _resolved(written, own.parent)
    if resolved == written:
        kubeconfig.symlink_to(own)
    else:  # kubectl would look for the files beside the link
        replace_file(kubeconfig, yaml.safe_dump(resolved, sort_keys=False))


def _resolved(value: object, directory: Path) -> object:
    if isinstance(value, list):
        return [_resolved(each, directory) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: str(directory / each) if name in _FILES and isinstance(each, str) and each else _resolved(each, directory)
        for name, each in value.items()
    }
