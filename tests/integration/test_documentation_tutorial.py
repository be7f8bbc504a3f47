"""docs/adding-a-lifecycle.md typed to the letter: its Greeting lives on a local deployment, from its own package."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import documented
import pytest
import tutorial
from person import Person
from waiting import until

from localcloud.packages import install

PAGE = "docs/adding-a-lifecycle.md"
CONFIG_MAP = "kubectl get configmap hello -o jsonpath='{.metadata.uid} {.data.text}'"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.integration,
    pytest.mark.timeout(600),
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="the page speaks of kubectl, which is not installed"),
]


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    found = Person(documented.ROOT, tmp_path)
    install(tutorial.EXAMPLE, tmp_path / ".local" / "state" / "perdure" / "local" / "packages")
    found.type("perdure up --detach")
    found.type(f"kubectl apply -f {tutorial.EXAMPLE / 'greeting.yaml'}")
    yield found
    found.type("perdure down --wipe")


def test_the_greeting_of_the_page_lives_as_it_says(person: Person) -> None:
    get, why, change, delete, pause, again, plan, resume, goodbye = (
        each.text
        for each in documented.commands_on(PAGE)
        if each.program in ("perdure", "kubectl") and "demo" not in each.words
    )
    until(lambda: "Shown" in person.type(get), "the greeting is shown")
    assert "its text is shown" in person.type(why)
    person.type(change)
    until(lambda: "hello again" in person.type(CONFIG_MAP), "the new text")
    before = person.type(CONFIG_MAP)
    person.type(delete)
    until(
        lambda: "hello again" in (now := person.type(CONFIG_MAP, fails=True)) and now != before,
        "the ConfigMap is written again",
    )
    person.type(pause)
    until(lambda: "pause" in person.type(why), "it is held")
    person.type(again)
    until(lambda: "write ConfigMap default/hello" in person.type(plan), "what it would do")
    assert "hello again" in person.type(CONFIG_MAP)
    person.type(resume)
    until(lambda: "good night" in person.type(CONFIG_MAP), "the text that was held")
    person.type(goodbye)
    until(lambda: "NotFound" in person.type(CONFIG_MAP, fails=True), "the ConfigMap is gone too")
    until(lambda: "Greeting" not in person.type("perdure list greeting -o json"), "its lifecycle has ended")
