"""Names of the claims area: guids, derived handle names, resources, watches; and the domain they hang on."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from claim_domain import NAMES

from domain.claims.domain_names import DomainNames
from domain.claims.handle_names import claim_handle_name, guid_of, pool_handle_name
from domain.claims.resource_definitions import resource_name
from domain.operator_domain import DEFAULT as DEFAULT_DOMAIN
from domain.operator_domain import parse
from starters.watch.resource_watches import watch_name

ROOT = Path(__file__).parents[3]
OTHER = DomainNames(domain="a.example.org")
UID = "5f0cbb6e-6c5a-4f5e-9d0f-2f9a5d1f8f11"


@pytest.mark.parametrize(
    ("name", "generate_name", "guid"),
    [
        ("guid-x7k2m", "guid-", "x7k2m"),
        ("guid-x7k2m", "", "x7k2m"),
        ("guid-demo-base-7", "", "demo-base-7"),
        ("guid-demo-base-7", "guid-demo-", "base-7"),
        ("guid-x7k2m", "other-", "x7k2m"),
        ("handmade", "", "dmade"),
        ("abc", "", "abc"),
    ],
)
def test_the_guid_is_what_follows_the_prefix_of_the_name(name: str, generate_name: str, guid: str) -> None:
    assert guid_of(name, generate_name) == guid


def test_a_handle_of_a_claim_is_named_as_the_api_server_would() -> None:
    name = claim_handle_name(UID)
    assert re.fullmatch(r"guid-[bcdfghjklmnpqrstvwxz2456789]{5}", name)
    assert guid_of(name, "guid-") == name[5:]


def test_names_are_the_same_in_every_process_and_release() -> None:
    # A handle that was created under this name must be found under it for ever.
    assert claim_handle_name("abc") == "guid-vlpzn"
    assert pool_handle_name("abc", 1) == "guid-9kf98"


def test_claims_serials_and_salts_have_names_of_their_own() -> None:
    # Of 14 million names; more of them would meet now and then, which is what the salt is for.
    names = {claim_handle_name(UID, salt) for salt in range(10)}
    names |= {pool_handle_name(UID, serial, salt) for serial in range(50) for salt in range(3)}
    assert len(names) == 160


@pytest.mark.parametrize(
    ("name", "generate_name", "index", "expected"),
    [
        ("fixed", "thing-", 0, "fixed"),
        ("fixed", "", 0, "fixed"),
        ("", "thing-", 2, "thing-x7k2m"),
        ("", "", 0, "guid0-x7k2m"),
        ("", "", 3, "guid3-x7k2m"),
    ],
)
def test_a_resource_is_named_by_its_definition_or_by_the_guid(
    name: str, generate_name: str, index: int, expected: str
) -> None:
    assert resource_name(name, generate_name, guid="x7k2m", index=index) == expected


@pytest.mark.parametrize(
    ("api_version", "kind", "namespace", "prefix"),
    [
        ("v1", "ConfigMap", "labs", "labs-"),
        ("v1", "Namespace", "", "cluster-"),
        ("anarchy.gpte.redhat.com/v1", "AnarchySubject", "anarchy-operator", "anarchy-operator-"),
    ],
)
def test_a_watch_is_named_by_what_it_watches(api_version: str, kind: str, namespace: str, prefix: str) -> None:
    digest = base64.urlsafe_b64encode(hashlib.sha256(f"{api_version}:{kind}:{namespace}".encode()).digest())
    twelve = re.sub("[=_-]", "", digest.decode()).lower()[:12]
    name = watch_name(api_version, kind, namespace)
    assert name == prefix + twelve
    assert re.fullmatch(r"[a-z0-9]{12}", name.removeprefix(prefix))


def test_digits_of_the_digest_that_no_name_may_have_are_left_out() -> None:
    # Its digest begins with -5_m7sEJI0k6Sb.
    name = watch_name("v1", "Kind41", "")
    assert name == "cluster-5m7seji0k6sb"


@pytest.mark.parametrize(
    ("configured", "domain"),
    [("", DEFAULT_DOMAIN), ("  ", DEFAULT_DOMAIN), ("poolboy.dev.local", "poolboy.dev.local"), (" a.b ", "a.b")],
)
def test_the_domain_is_configurable(configured: str, domain: str) -> None:
    assert parse(configured) == domain


@pytest.mark.parametrize("configured", ["poolboy", "Poolboy.dev", "a..b", "-a.b", "a.b/c", "a.b.", "a" * 300 + ".b"])
def test_a_malformed_domain_is_refused_by_name(configured: str) -> None:
    with pytest.raises(ValueError, match="OPERATOR_DOMAIN is"):
        parse(configured)


def test_every_name_contains_the_domain_and_no_other() -> None:
    suffixes = ("_label", "_key", "_annotation", "_finalizer", "_finalizers", "_path", "_version")
    names = [getattr(OTHER, name) for name in vars(DomainNames) if name.endswith(suffixes) and name[0] != "_"]
    flat = [each for name in names for each in (name if isinstance(name, tuple) else (name,))]
    assert len(flat) > 20
    assert all(
        each.replace("\\", "").removeprefix("/metadata/annotations/").startswith("a.example.org") for each in flat
    )


def test_the_operators_own_annotations_match_the_filter_that_every_provider_has() -> None:
    escaped = NAMES.resource_index_annotation.replace("/", "~1")
    assert re.fullmatch(NAMES.own_annotations_path, f"/metadata/annotations/{escaped}")
    assert not re.fullmatch(NAMES.own_annotations_path, f"/metadata/annotations/{escaped}".replace(".", "x"))


def test_the_command_renders_the_definitions_of_another_domain_and_of_older_servers(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "starters.cli.main", "crds", "--no-selectable-fields", "--output", str(tmp_path)]
    environ = {**os.environ, "OPERATOR_DOMAIN": "poolboy.dev.local"}
    subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, timeout=60, check=True)
    files = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert "poolboy.dev.local_resourcewatches.yaml" in files
    assert "aws.managed.openshift.io_accounts.yaml" in files
    assert not [name for name, text in files.items() if DEFAULT_DOMAIN in text or "selectableFields" in text]
