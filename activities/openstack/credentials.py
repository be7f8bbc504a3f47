"""The credentials of a project: a LoadBalancer's Secret, entry `cloudprovider.conf`, as yawol reads it.

The entry is an INI file with a section `[Global]`: `auth-url`, `username`, `password`, `domain-name` or `domain-id` (of
the user and the project), `project-name` (formerly `tenant-name`), `project-id`, `region`, `ca-file`. Values are
trimmed and may be quoted; `#` has no meaning in a value. Empty or missing values are taken from the environment
(`OS_AUTH_URL`, ...). `OS_CACERT` takes precedence over `ca-file`, and a LoadBalancer's project over the Secret's. No
error quotes the file.
"""

from __future__ import annotations

import base64
import binascii
import configparser
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from domain.loadbalancers.constants import CREDENTIALS_KEY
from engine.errors import Invalid

BAD_CREDENTIALS = "BadCredentials"
_SECTION = "Global"
_QUOTES = "\"'`"
_DOMAIN_IDS = ("OS_USER_DOMAIN_ID", "OS_PROJECT_DOMAIN_ID", "OS_DOMAIN_ID", "OS_DEFAULT_DOMAIN_ID")
_DOMAIN_NAMES = ("OS_USER_DOMAIN_NAME", "OS_PROJECT_DOMAIN_NAME", "OS_DOMAIN_NAME", "OS_DEFAULT_DOMAIN")


@dataclass(frozen=True, slots=True)
class Credentials:
    """A project's credentials. Domain and project are each given by id or by name; the other field is empty. If
    `ca_file` is empty, the system's certificates apply.
    """

    auth_url: str
    username: str
    password: str = field(repr=False)
    domain_id: str = ""
    domain_name: str = ""
    project_id: str = ""
    project_name: str = ""
    region: str = ""
    ca_file: str = ""

    @property
    def project(self) -> str:
        return f"project {self.project_id or self.project_name}"

    @property
    def place(self) -> tuple[str, ...]:
        """Identifies the project and its cloud, not the user."""
        domain = "" if self.project_id else self.domain_id or self.domain_name
        return (self.auth_url, self.region, domain, self.project_id or self.project_name)


def read_credentials(
    content: Mapping[str, object], where: str, *, project_id: str = "", environment: Mapping[str, str]
) -> Credentials:
    """The credentials in a Secret's data; `environment` fills gaps. Raises Invalid if unusable."""
    section = _section(content, where)

    def given(key: str, variable: str) -> str:
        return section.get(key, "") or environment.get(variable, "")

    domain_id, domain_name = _first(section, "domain-id"), _first(section, "domain-name")
    if domain_id and domain_name:
        raise _bad(where, "domain-id and domain-name are both given: one of them is enough")
    if not domain_id and not domain_name:
        domain_id = _first(environment, *_DOMAIN_IDS)
        domain_name = "" if domain_id else _first(environment, *_DOMAIN_NAMES)
    project, project_name = project_id or _first(section, "project-id"), _first(section, "project-name", "tenant-name")
    if not project and not project_name:
        project = _first(environment, "OS_PROJECT_ID", "OS_TENANT_ID")
        project_name = _first(environment, "OS_PROJECT_NAME", "OS_TENANT_NAME")
    found = Credentials(
        auth_url=_version_three(given("auth-url", "OS_AUTH_URL")),
        username=given("username", "OS_USERNAME"),
        password=given("password", "OS_PASSWORD"),
        domain_id=domain_id,
        domain_name=domain_name,
        project_id=project,
        project_name="" if project else project_name,
        region=given("region", "OS_REGION_NAME"),
        ca_file=environment.get("OS_CACERT", "") or section.get("ca-file", ""),
    )
    _check(found, where)
    return found


def _first(values: Mapping[str, str], *keys: str) -> str:
    return next((values[key] for key in keys if values.get(key)), "")


def _section(content: Mapping[str, object], where: str) -> Mapping[str, str]:
    encoded = content.get(CREDENTIALS_KEY)
    if not isinstance(encoded, str) or not encoded:
        raise _bad(where, f"it has no entry {CREDENTIALS_KEY}")
    try:
        written = base64.b64decode(encoded, validate=True).decode("utf-8-sig")
    except (binascii.Error, UnicodeDecodeError):
        raise _bad(where, f"{CREDENTIALS_KEY} is not text") from None
    parser = configparser.RawConfigParser(strict=False, default_section="", empty_lines_in_values=False)
    try:
        # Indentation has no meaning in these files, but would continue a line for this parser.
        parser.read_string("\n".join(line.strip() for line in written.split("\n")))
    except configparser.Error as error:
        # The parser's message quotes lines of the file.
        line = getattr(error, "lineno", None) or next((each[0] for each in getattr(error, "errors", ())), "?")
        raise _bad(where, f"{CREDENTIALS_KEY} is not an INI file: check line {line}") from None
    if not parser.has_section(_SECTION):
        raise _bad(where, f"{CREDENTIALS_KEY} has no section [{_SECTION}]")
    return {key: _unquoted(value) for key, value in parser.items(_SECTION)}


def _unquoted(value: str) -> str:
    trimmed = value.strip()
    if len(trimmed) >= 2 and trimmed[0] in _QUOTES and trimmed[-1] == trimmed[0]:
        return trimmed[1:-1]
    return trimmed


def _version_three(url: str) -> str:
    bare = url.rstrip("/")
    return bare if not bare or bare.endswith("/v3") else f"{bare.removesuffix('/v2.0')}/v3"


def _check(found: Credentials, where: str) -> None:
    lacking = [
        name
        for name, value in (
            ("auth-url", found.auth_url),
            ("username", found.username),
            ("password", found.password),
            ("domain-name", found.domain_id or found.domain_name),
            ("project-id or project-name", found.project_id or found.project_name),
        )
        if not value
    ]
    if lacking:
        raise _bad(where, f"[{_SECTION}] of {CREDENTIALS_KEY} lacks {', '.join(lacking)}")
    if not _is_address(found.auth_url):
        raise _bad(where, "auth-url is not an http or https address")
    # An http address needs no certificates. openstacksdk expands `~` in the same way.
    if found.ca_file and found.auth_url.startswith("https") and not os.path.exists(os.path.expanduser(found.ca_file)):
        raise _bad(where, f"this process has no file {found.ca_file}: check ca-file, or the environment's OS_CACERT")


def _is_address(url: str) -> bool:
    try:
        return urlsplit(url).scheme in ("http", "https")
    except ValueError:  # such as https://[x
        return False


def _bad(where: str, why: str) -> Invalid:
    return Invalid(f"{where} with an OpenStack project's credentials: {why}", code=BAD_CREDENTIALS)
