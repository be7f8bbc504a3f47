"""The credentials of a project: what a LoadBalancer's Secret says under `cloudprovider.conf`, as yawol reads it.

An INI file with a section `[Global]`: `auth-url`, `username`, `password`, `domain-name` or `domain-id` (of user and
project alike), `project-name` (formerly `tenant-name`), `project-id`, `region`, `ca-file`. Values are trimmed and may
be quoted; a `#` within a value belongs to it. What is left empty comes from the process's environment, as OpenStack's
clients name it (`OS_AUTH_URL`, `OS_USERNAME`, ...); `OS_CACERT` beats `ca-file`. A LoadBalancer that names a project
means that one, whatever the Secret says.

A password is in here: it stands in no representation, and no error of this module quotes the file.
"""

from __future__ import annotations

import base64
import binascii
import configparser
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from domain.loadbalancers.constants import CREDENTIALS_KEY
from engine.errors import Invalid

BAD_CREDENTIALS = "BadCredentials"
_SECTION = "Global"
_QUOTES = "\"'`"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who calls, and for which project.

    Attributes:
        auth_url: Keystone's, version 3.
        username: the user.
        password: the user's.
        domain_id: of user and project; empty where `domain_name` is given.
        domain_name: the same by name.
        project_id: the project; empty where `project_name` is given.
        project_name: the same by name.
        region: of the catalog; any if empty.
        ca_file: the certificates to trust; the system's if empty.
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
        """The project, as in messages to people."""
        return f"project {self.project_id or self.project_name}"

    @property
    def place(self) -> tuple[str, ...]:
        """The identity of the project and its cloud, independent of the credentials."""
        domain = "" if self.project_id else self.domain_id or self.domain_name
        return (self.auth_url, self.region, domain, self.project_id or self.project_name)


def read_credentials(
    content: Mapping[str, object], where: str, *, project_id: str = "", environment: Mapping[str, str]
) -> Credentials:
    """The credentials that a Secret holds.

    Args:
        content: the Secret's `data`, in base64 as Kubernetes has it.
        where: the Secret as people find it, `Secret namespace/name`.
        project_id: the project that the LoadBalancer names, empty if none.
        environment: what fills the gaps.

    Raises:
        Invalid: the Secret says too little, or too much.
    """
    given = _Given(_section(content, where), environment)
    domain_id, domain_name = given.either(("domain-id",), ("domain-name",))
    if domain_id and domain_name:
        raise _bad(where, "domain-id and domain-name are both given: one of them is enough")
    if not domain_id and not domain_name:
        domain_id, domain_name = given.domain()
    project, project_name = given.either(("project-id",), ("project-name", "tenant-name"))
    if project_id:
        project, project_name = project_id, ""
    elif not project and not project_name:
        project, project_name = given.project()
    found = Credentials(
        auth_url=_version_three(given.value("auth-url", "OS_AUTH_URL")),
        username=given.value("username", "OS_USERNAME"),
        password=given.value("password", "OS_PASSWORD"),
        domain_id=domain_id,
        domain_name=domain_name,
        project_id=project,
        project_name="" if project else project_name,
        region=given.value("region", "OS_REGION_NAME"),
        ca_file=environment.get("OS_CACERT", "") or given.value("ca-file", ""),
    )
    _check(found, where)
    return found


class _Given:
    """The section's values, and the environment behind them."""

    def __init__(self, section: Mapping[str, str], environment: Mapping[str, str]) -> None:
        self._section = section
        self._environment = environment

    def value(self, key: str, variable: str) -> str:
        return self._section.get(key, "") or self._environment.get(variable, "")

    def either(self, one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, str]:
        """The first non-empty value of each of two groups of keys."""
        return self._first(self._section, *one), self._first(self._section, *other)

    def domain(self) -> tuple[str, str]:
        """The environment's; an id goes before a name."""
        ids = ("OS_USER_DOMAIN_ID", "OS_PROJECT_DOMAIN_ID", "OS_DOMAIN_ID", "OS_DEFAULT_DOMAIN_ID")
        names = ("OS_USER_DOMAIN_NAME", "OS_PROJECT_DOMAIN_NAME", "OS_DOMAIN_NAME", "OS_DEFAULT_DOMAIN")
        found = self._first(self._environment, *ids)
        return found, "" if found else self._first(self._environment, *names)

    def project(self) -> tuple[str, str]:
        """The environment's."""
        return (
            self._first(self._environment, "OS_PROJECT_ID", "OS_TENANT_ID"),
            self._first(self._environment, "OS_PROJECT_NAME", "OS_TENANT_NAME"),
        )

    @staticmethod
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
        # Indentation means nothing in these files; to this parser a line further in goes on with the one before.
        parser.read_string("\n".join(line.strip() for line in written.split("\n")))
    except configparser.Error as error:
        # Its message quotes lines of the file.
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
    """Keystone's third version: where the address names no version it is asked for there, without a look first."""
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
    if urlsplit(found.auth_url).scheme not in ("http", "https"):
        raise _bad(where, "auth-url is not an http or https address")


def _bad(where: str, why: str) -> Invalid:
    return Invalid(f"{where} with an OpenStack project's credentials: {why}", code=BAD_CREDENTIALS)
