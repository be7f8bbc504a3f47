"""docs/quick-start.md typed to the letter, in its order, with everything running; what is printed has its shape."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import documented
import pytest
from documented import ROOT
from person import Person
from waiting import until

from localcloud.aws.control import Emulator
from localcloud.demo.scenarios import SCENARIOS
from localcloud.deployment import Deployment
from localcloud.services import AWS, WORKER

PAGE = "docs/quick-start.md"
PATIENT = 180.0
pytestmark = [
    pytest.mark.slow,
    pytest.mark.integration,
    pytest.mark.timeout(900),
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="the page speaks of kubectl, which is not installed"),
]


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    found = Person(ROOT, tmp_path)
    yield found
    found.type("perdure down --wipe")


def accounts(person: Person) -> dict[str, str]:
    """Each Account's phase, by its name."""
    output = person.type("perdure list account -o json")
    return {row["name"]: row["phase"] for row in json.loads(output[: output.rindex("]") + 1])}


def test_the_quick_start_goes_as_it_says(person: Person, tmp_path: Path) -> None:
    texts = [
        each.text for each in documented.commands_on(PAGE) if each.program in ("perdure", "kubectl", "curl", "kill")
    ]
    (demo, up, pool, overview, claim, look, why, give_back, *rest) = texts
    (deny, grow, listed, why_one, mend, retry_one, status, kill, down, wipe) = rest
    assert "demo accounts" in demo  # played by test_demo.py

    assert "kubectl and perdure in this shell:" in person.type(up)
    deployment = Deployment(tmp_path / ".local" / "state" / "perdure" / "local")
    with Emulator(deployment.service(AWS).url or "") as emulator:
        emulator.config(**dict.fromkeys(SCENARIOS["accounts"].delays, 0))  # no person watches the delays
    assert "accountpool.aws.managed.openshift.io/default created" in person.type(pool)
    until(lambda: re.search(r"AccountPool +.*default", person.type(overview)), "the pool is listed")
    until(lambda: "Ready" in accounts(person).values(), "an account is ready", PATIENT)

    person.type(claim)
    until(lambda: "secret/aws-credentials" in person.type(look), "the claim's Secret", PATIENT)
    assert "accountclaim.aws.managed.openshift.io/cluster-one" in person.type(look)
    until(lambda: "Ready" in person.type(why), "the claim is served")
    person.type(give_back)
    assert "aws-credentials" not in person.type(look)

    # Three without a former claim, and the released one.
    until(lambda: list(accounts(person).values()) == ["Ready"] * 4, "all are ready", PATIENT)
    known = set(accounts(person))
    person.type(deny)
    person.type(grow)
    (new,) = until(lambda: set(accounts(person)) - known, "the pool has grown")
    until(lambda: new in person.type(listed), "it is listed")
    of_new = {text: text.replace("NAME", new, 1) for text in (why_one, retry_one)}
    until(lambda: "CreateUser" in person.type(of_new[why_one]), "the refusal is reported", PATIENT)
    person.type(mend)
    until(lambda: accounts(person)[new] == "Ready", "it heals by itself", PATIENT)
    assert "nothing to retry" in person.type(of_new[retry_one], fails=True)

    assert "worker" in person.type(status)
    before = deployment.service(WORKER).pid
    person.type(kill.replace("PID", str(before), 1))
    until(
        lambda: deployment.status().healthy and deployment.service(WORKER).pid != before, "the worker is back", PATIENT
    )
    person.type(down)
    assert not deployment.status().running
    person.type(wipe)
    assert not deployment.state.root.exists() or not any((deployment.state.root / "data").glob("*"))
