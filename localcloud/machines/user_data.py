"""Reads a machine's user data, as cloud-init does on a real one: files, services, the agent's arguments.

Only a cloud-config with the files for agent and keepalived is accepted. All paths are paths in the image.
"""

from __future__ import annotations

import base64
import binascii
import re
import shlex
from typing import Any

import yaml
from pydantic import ConfigDict, Field, ValidationError

from domain.model import Model

HEADER = "#cloud-config"
ENVIRONMENT = "/etc/yawol/env.conf"
KEEPALIVED = "/etc/keepalived/keepalived.conf"
AGENT, ENVOY, KEEPALIVED_SERVICE = "yawollet", "envoy", "keepalived"

_ARGUMENTS = "YAWOLLET_ARGS"
_VIRTUAL_ADDRESS = re.compile(r"virtual_ipaddress\s*\{\s*([0-9.]+)\s*\}")
_STARTING = ("start", "restart")


class ForeignError(ValueError):
    pass


class File(Model):
    path: str
    content: bytes = Field(repr=False)
    mode: int


class Vrrp(Model):
    virtual_address: str
    priority: int
    envoy_weight: int
    agent_weight: int


class Birth(Model):
    files: tuple[File, ...]
    services: frozenset[str]
    """The services that the user data starts."""
    arguments: dict[str, str]
    """The agent's arguments, by flag."""
    vrrp: Vrrp


class _WriteFile(Model):
    model_config = ConfigDict(extra="forbid")

    path: str
    content: str
    encoding: str = ""
    owner: str = "root:root"
    permissions: str = "0644"

    def file(self) -> File:
        if self.encoding not in ("", "b64"):
            raise ForeignError(f"{self.path} has the encoding {self.encoding!r}")
        content = base64.b64decode(self.content, validate=True) if self.encoding else self.content.encode()
        return File(path=self.path, content=content, mode=int(self.permissions, 8))


class _CloudConfig(Model):
    model_config = ConfigDict(extra="forbid")

    write_files: tuple[_WriteFile, ...]
    runcmd: tuple[tuple[str, ...], ...]


def read(encoded: str) -> Birth:
    """Parse user data in base64, as Nova stores it; raises ForeignError if it is not a load balancer machine's."""
    config = _config(encoded)
    try:
        files = tuple(each.file() for each in config.write_files)
    except (binascii.Error, ValueError) as error:
        raise ForeignError(f"a file cannot be read: {error}") from error
    return Birth(
        files=files,
        services=_started(config.runcmd),
        arguments=_arguments(_text(files, ENVIRONMENT)),
        vrrp=_vrrp(_text(files, KEEPALIVED)),
    )


def _config(encoded: str) -> _CloudConfig:
    try:
        text = base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ForeignError(f"the user data is not base64 of a text: {error}") from error
    if not text.strip():
        raise ForeignError("there is no user data")
    if not text.lstrip("\n").startswith(f"{HEADER}\n"):
        raise ForeignError(f"the user data does not begin with {HEADER}")
    try:
        found: Any = yaml.safe_load(text)
        return _CloudConfig.model_validate(found)
    except (yaml.YAMLError, ValidationError) as error:
        # The parsers' messages quote their input, which contains tokens.
        raise ForeignError(f"the cloud-config is not a load balancer machine's: {type(error).__name__}") from None


def _text(files: tuple[File, ...], path: str) -> str:
    found = next((each for each in files if each.path == path), None)
    if found is None:
        raise ForeignError(f"the cloud-config does not write {path}")
    return found.content.decode()


def _started(commands: tuple[tuple[str, ...], ...]) -> frozenset[str]:
    return frozenset(
        each[1] for each in commands if len(each) == 3 and each[0] == "rc-service" and each[2] in _STARTING
    )


def _arguments(environment: str) -> dict[str, str]:
    name, _, quoted = environment.strip().partition("=")
    if name != _ARGUMENTS:
        raise ForeignError(f"{ENVIRONMENT} does not set {_ARGUMENTS}")
    words = shlex.split(" ".join(shlex.split(quoted)))
    found: dict[str, str] = {}
    while words:
        flag, equals, value = words.pop(0).partition("=")
        if not flag.startswith("--") or (not equals and not words):
            raise ForeignError(f"{ENVIRONMENT} has {flag!r}, which is not a flag with a value")
        found[flag] = value if equals else words.pop(0)
    return found


def _vrrp(configuration: str) -> Vrrp:
    address = _VIRTUAL_ADDRESS.search(configuration)
    priority = re.search(r"^\s*priority (\d+)$", configuration, re.MULTILINE)
    weights = {
        name: re.search(rf"{block} \{{[^}}]*?weight (\d+)", configuration)
        for name, block in (("envoy", "vrrp_track_process envoy"), ("agent", "vrrp_script yawollethealth"))
    }
    envoy, agent = weights["envoy"], weights["agent"]
    if address is None or priority is None or envoy is None or agent is None:
        raise ForeignError(f"{KEEPALIVED} is not a configuration of the image's keepalived")
    return Vrrp(
        virtual_address=address[1], priority=int(priority[1]), envoy_weight=int(envoy[1]), agent_weight=int(agent[1])
    )
