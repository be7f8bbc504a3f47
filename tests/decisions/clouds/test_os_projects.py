"""Which projects a process calls, by the Secrets that it reads; and the user data that is made of a machine's own."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any

import pytest
import yaml
from lb_objects import balancer, machine

from activities.openstack import projects
from activities.openstack.projects import Projects
from activities.openstack.server_user_data import FOREIGN_SECRET, birth
from domain.identity import Kind
from domain.loadbalancers.machine.api_access import SECRET_GONE, access_objects
from domain.loadbalancers.project import ProjectReference
from engine.errors import Absent, Denied, Invalid, Pending
from engine.kube import BlockingKube
from engine.settings import Settings

REFERENCE = ProjectReference(namespace="lbs", secret="cloud")
CONFIGURATION = """[Global]
auth-url = https://cloud.example/v3
username = robot
password = {password}
domain-name = Default
project-id = shop
"""


class PaperKube(BlockingKube):
    """Objects by kind and name, as an API server would give them; counts how often it is asked."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.reads = 0

    def get(self, kind: Kind, namespace: str, name: str) -> dict[str, object]:
        self.reads += 1
        try:
            return self.objects[(kind.name, name)]
        except KeyError:
            raise Absent(f"{kind.name} {namespace}/{name}") from None

    def put_secret(self, name: str, version: str, **entries: str) -> None:
        data = {key.replace("_", "."): base64.b64encode(value.encode()).decode() for key, value in entries.items()}
        self.objects[("Secret", name)] = {"metadata": {"name": name, "resourceVersion": version}, "data": data}

    def put_credentials(self, version: str, password: str = "one") -> None:
        self.put_secret("cloud", version, cloudprovider_conf=CONFIGURATION.format(password=password))


@pytest.fixture
def kube() -> PaperKube:
    kube = PaperKube()
    kube.put_credentials("1")
    return kube


def test_a_secret_is_read_once_and_its_project_reused(kube: PaperKube) -> None:
    known = Projects(kube, Settings())
    assert known.project(REFERENCE) is known.project(REFERENCE)
    assert kube.reads == 1


def test_a_secret_that_is_as_it_was_keeps_its_token(kube: PaperKube, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projects, "REREAD_SECONDS", 0.0)
    known = Projects(kube, Settings())
    assert known.project(REFERENCE) is known.project(REFERENCE)
    assert kube.reads == 2


def test_a_secret_that_has_changed_is_another_credential(kube: PaperKube, monkeypatch: pytest.MonkeyPatch) -> None:
    known = Projects(kube, Settings())
    before = known.project(REFERENCE)
    kube.put_credentials("2", "two")
    assert known.project(REFERENCE) is before
    monkeypatch.setattr(projects, "REREAD_SECONDS", 0.0)
    assert known.project(REFERENCE) is not before


def test_a_secret_is_read_sooner_when_keystone_has_refused_it(kube: PaperKube, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projects, "REREAD_REFUSED_SECONDS", 0.0)
    known = Projects(kube, Settings())
    before = known.project(REFERENCE)
    kube.put_credentials("2", "two")
    assert known.project(REFERENCE) is before
    monkeypatch.setattr(type(before.token), "refused", True)
    assert known.project(REFERENCE) is not before


def test_the_load_balancers_own_project_has_a_token_of_its_own(kube: PaperKube) -> None:
    known = Projects(kube, Settings())
    other = known.project(REFERENCE.model_copy(update={"project_id": "other"}))
    assert other is not known.project(REFERENCE)
    assert (other.name, kube.reads) == ("project other", 1)


def test_two_secrets_of_one_project_share_its_limits(kube: PaperKube) -> None:
    kube.put_secret("cloud-2", "7", cloudprovider_conf=CONFIGURATION.format(password="x"))
    known = Projects(kube, Settings())
    one = known.project(REFERENCE)
    other = known.project(REFERENCE.model_copy(update={"secret": "cloud-2"}))
    assert one.guard is other.guard


def test_a_missing_secret_is_reported_and_read_again(kube: PaperKube) -> None:
    known = Projects(kube, Settings())
    del kube.objects[("Secret", "cloud")]
    with pytest.raises(Denied, match="Secret lbs/cloud") as refused:
        known.project(REFERENCE)
    assert refused.value.code == "NoCredentials"
    kube.put_credentials("3")
    assert known.project(REFERENCE).name == "project shop"


def test_the_correction_of_an_incomplete_secret_is_seen_at_once(kube: PaperKube) -> None:
    known = Projects(kube, Settings())
    kube.put_credentials("2", "")
    with pytest.raises(Invalid, match="password"):
        known.project(REFERENCE)
    kube.put_credentials("3")
    assert known.project(REFERENCE).name == "project shop"


# User data.


SETTINGS = Settings(
    API_ENDPOINT="https://api.example:443",
    loadbalancers_ntp_servers=("time.example",),
    loadbalancers_agent_interval=timedelta(seconds=20),
)


def put_token(kube: PaperKube, **entries: str) -> None:
    """The Secret of the machine's ServiceAccount."""
    name = machine().metadata.name
    kube.put_secret(name, "1", **entries)
    (_, secret, *_) = access_objects(machine())
    made = kube.objects[("Secret", name)]
    made["type"] = secret["type"]
    made["metadata"] = {**made["metadata"], **secret["metadata"]}  # type: ignore[dict-item]


@pytest.fixture
def machines(kube: PaperKube) -> PaperKube:
    put_token(kube, token="a-token", ca_crt="a certificate")
    return kube


def born(kube: PaperKube, settings: Settings = SETTINGS) -> str:
    return birth(kube, settings, machine(), balancer(), "10.1.0.5")


def files(text: str) -> dict[str, str]:
    written = yaml.safe_load(text)["write_files"]
    return {
        each["path"]: base64.b64decode(each["content"]).decode() if each.get("encoding") else each["content"]
        for each in written
    }


def test_a_missing_secret_of_a_machine_is_told_apart_from_what_openstack_misses(kube: PaperKube) -> None:
    with pytest.raises(Absent) as raised:
        born(kube)
    assert raised.value.code == SECRET_GONE


def test_a_machine_is_born_with_its_token_and_its_address(machines: PaperKube) -> None:
    written = files(born(machines))
    config = yaml.safe_load(written["/etc/yawol/kubeconfig"])
    assert config["clusters"][0]["cluster"]["server"] == "https://api.example:443"
    assert config["users"][0]["user"]["token"] == "a-token"
    assert "--listen-address=10.1.0.5" in written["/etc/yawol/env.conf"]
    assert "--requeue-time=20" in written["/etc/yawol/env.conf"]
    assert "server time.example iburst" in written["/etc/chrony/chrony.conf"]


@pytest.mark.parametrize("entries", [{}, {"token": "t"}, {"token": "", "ca_crt": "c"}])
def test_a_token_that_is_not_there_yet_is_waited_for(machines: PaperKube, entries: dict[str, str]) -> None:
    put_token(machines, **entries)
    with pytest.raises(Pending):
        born(machines)


def test_the_token_in_a_strangers_secret_of_the_machines_name_is_not_used(machines: PaperKube) -> None:
    machines.put_secret(machine().metadata.name, "2", token="a stranger's", ca_crt="a certificate")
    with pytest.raises(Invalid, match="is not the token of the machine's ServiceAccount") as refused:
        born(machines)
    assert refused.value.code == FOREIGN_SECRET


def test_without_an_address_of_the_api_no_machine_is_made(machines: PaperKube) -> None:
    with pytest.raises(Invalid, match="API_ENDPOINT"):
        born(machines, Settings(API_ENDPOINT=""))
