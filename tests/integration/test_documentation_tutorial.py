"""docs/adding-a-lifecycle.md typed to the letter: its Greeting lives on a local deployment of the changed project."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import documented
import pytest
import tutorial
import yaml
from person import Person
from waiting import until

PAGE = "docs/adding-a-lifecycle.md"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.integration,
    pytest.mark.timeout(600),
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="the page speaks of kubectl, which is not installed"),
]


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    found = Person(tutorial.follow(tmp_path), tmp_path)
    yield found
    found.type("perdure down --wipe")


def test_the_greeting_of_the_page_lives_as_it_says(person: Person) -> None:
    (hello,) = (each.text for each in documented.blocks_of(tutorial.PAGE) if each.language == "yaml")
    assert yaml.safe_load(hello)["kind"] == "Greeting"
    (person.project / "hello.yaml").write_text(hello)
    up, apply, get, why, delete, patch, text, pause, blank, plan, resume, goodbye, down = (
        each.text for each in documented.commands_on(PAGE) if each.program in ("perdure", "kubectl")
    )
    person.type(up)
    person.type(apply)
    until(lambda: "Shown" in person.type(get), "the greeting is shown")
    assert "its text is shown" in person.type(why)
    before = person.type("kubectl get configmap hello -o jsonpath='{.metadata.uid}'")
    person.type(delete)
    until(
        lambda: (
            person.type("kubectl get configmap hello -o jsonpath='{.metadata.uid}'", fails=True) not in (before, "")
            and "NotFound" not in person.type("kubectl get configmap hello", fails=True)
        ),
        "the ConfigMap is made again",
    )
    person.type(patch)
    until(lambda: person.type(text) == "good evening", "the new text")
    person.type(pause)
    until(lambda: "pause" in person.type(why), "it is held")
    person.type(blank)
    until(lambda: "it has no text" in person.type(plan), "what it would do")
    assert "Shown" in person.type(get)
    person.type(resume)
    until(lambda: "Waiting" in person.type(get), "the missing text is told")
    person.type(goodbye)
    until(lambda: "NotFound" in person.type("kubectl get configmap hello", fails=True), "the ConfigMap is gone too")
    until(lambda: "Greeting" not in person.type("perdure list greeting -o json"), "its lifecycle has ended")
    person.type(down)
