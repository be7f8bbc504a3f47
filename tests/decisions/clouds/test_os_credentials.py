"""Credentials of OpenStack projects: what a Secret's cloudprovider.conf says, and what fills its gaps."""

from __future__ import annotations

import base64

import pytest

from activities.openstack.credentials import Credentials, read_credentials
from engine.errors import Invalid

WHERE = "Secret lbs/cloud"
CERTIFICATES = __file__  # a file that exists
FULL = f"""
[Global]
auth-url = https://cloud.example/identity
username = "robot"
password = a#b;c %(x)s
domain-name = Default
project-name = 'web shop'
region = north
ca-file = {CERTIFICATES}
"""


def read(text: str, *, project_id: str = "", **environment: str) -> Credentials:
    content = {"cloudprovider.conf": base64.b64encode(text.encode()).decode()}
    return read_credentials(content, WHERE, project_id=project_id, environment=environment)


def refused(text: str, **environment: str) -> str:
    with pytest.raises(Invalid) as error:
        read(text, **environment)
    assert WHERE in error.value.message
    assert error.value.code == "BadCredentials"
    assert error.value.__cause__ is None
    return error.value.message


def without(*keys: str) -> str:
    return "\n".join(line for line in FULL.splitlines() if line.partition(" ")[0] not in keys)


def test_a_full_secret_is_read_unchanged() -> None:
    assert read(FULL) == Credentials(
        auth_url="https://cloud.example/identity/v3",
        username="robot",
        password="a#b;c %(x)s",
        domain_name="Default",
        project_name="web shop",
        region="north",
        ca_file=CERTIFICATES,
    )


@pytest.mark.parametrize("before", ["", "  ", "\t"])
def test_indentation_means_nothing(before: str) -> None:
    lines = [line if number % 2 else f"{before}{line}" for number, line in enumerate(FULL.splitlines())]
    assert read("\r\n".join(lines)) == read(FULL)


def test_a_password_appears_in_no_representation() -> None:
    assert "a#b" not in repr(read(FULL))


@pytest.mark.parametrize(
    "url", ["https://c.example/identity", "https://c.example/identity/", "https://c.example/identity/v2.0"]
)
def test_keystone_is_spoken_to_in_its_third_version(url: str) -> None:
    found = read(FULL.replace("https://cloud.example/identity", url))
    assert found.auth_url == "https://c.example/identity/v3"


def test_the_load_balancers_project_beats_the_secrets() -> None:
    found = read(FULL, project_id="abc")
    assert (found.project_id, found.project_name) == ("abc", "")


def test_a_projects_id_beats_its_name() -> None:
    found = read(f"{FULL}project-id = abc\n")
    assert (found.project_id, found.project_name) == ("abc", "")


def test_the_former_name_of_a_projects_name_is_read() -> None:
    assert read(f"{without('project-name')}\ntenant-name = old\n").project_name == "old"


def test_both_ways_to_name_the_domain_are_refused() -> None:
    assert "domain-id and domain-name" in refused(f"{FULL}domain-id = default\n")


def test_the_environment_fills_what_is_empty_and_nothing_else() -> None:
    found = read(
        without("password", "domain-name", "region", "project-name"),
        OS_AUTH_URL="https://other.example",
        OS_PASSWORD="secret",
        OS_DOMAIN_ID="default",
        OS_DOMAIN_NAME="Default",
        OS_REGION_NAME="south",
        OS_PROJECT_ID="p",
        OS_CACERT="/etc",
    )
    assert found.auth_url == "https://cloud.example/identity/v3"
    assert (found.password, found.region, found.ca_file) == ("secret", "south", "/etc")
    assert (found.domain_id, found.domain_name) == ("default", "")
    assert (found.project_id, found.project_name) == ("p", "")


def test_a_domain_of_the_environment_is_no_second_one() -> None:
    assert read(FULL, OS_DOMAIN_ID="default").domain_id == ""


@pytest.mark.parametrize("key", ["auth-url", "username", "password", "domain-name", "project-name"])
def test_a_missing_field_is_named(key: str) -> None:
    assert key in refused(without(key))


def test_certificates_that_this_process_does_not_have_are_named() -> None:
    assert "/nowhere/ca.pem" in refused(FULL.replace(CERTIFICATES, "/nowhere/ca.pem"))
    assert "/nowhere/os.pem" in refused(FULL, OS_CACERT="/nowhere/os.pem")


def test_an_http_address_needs_no_certificates() -> None:
    assert read(FULL.replace("https:", "http:").replace(CERTIFICATES, "/nowhere/ca.pem")).ca_file == "/nowhere/ca.pem"


@pytest.mark.parametrize("url", ["https://[x", "ftp://cloud.example", "cloud.example"])
def test_an_address_of_keystone_that_cannot_be_called_is_refused(url: str) -> None:
    assert "auth-url" in refused(FULL.replace("https://cloud.example/identity", url))


@pytest.mark.parametrize(
    "text",
    ["password = hunter2", "[Global]\nhunter2\n", "[Global\nhunter2 = x", "[Other]\npassword = hunter2"],
    ids=["no section", "no value", "a broken section", "another section"],
)
def test_a_broken_file_is_refused_and_not_quoted(text: str) -> None:
    assert "hunter2" not in refused(text)


def test_a_secret_without_the_entry_is_refused() -> None:
    with pytest.raises(Invalid, match=r"cloudprovider\.conf"):
        read_credentials({"other": "eA=="}, WHERE, environment={})


def test_a_field_that_is_no_text_is_refused() -> None:
    with pytest.raises(Invalid, match="not text"):
        read_credentials({"cloudprovider.conf": "%%%"}, WHERE, environment={})


def test_a_project_is_one_place_under_any_credentials() -> None:
    one, other = read(FULL, project_id="abc"), read(FULL.replace("robot", "other"), project_id="abc")
    assert one.place == other.place
    assert one.place != read(FULL).place
