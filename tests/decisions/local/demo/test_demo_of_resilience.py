"""What the audit of `perdure demo resilience` calls a difference, and what lifecycles are said to do next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import cast

import pytest
from account_objects import account

from domain.why import Why
from localcloud.demo import resilience
from localcloud.demo.cloud_audit import Comparison, compare, support_cases
from localcloud.demo.crashes import next_step
from localcloud.demo.stage import Stage, UnsettledError


@pytest.mark.parametrize(
    ("recorded", "held", "problem"),
    [
        ({"a": "1"}, [("a", "1")], ""),
        ({"a": "1"}, [], "missing in the cloud"),
        ({"a": "1"}, [("a", "2")], "another one than recorded"),
        ({"a": "1"}, [("a", "1"), ("a", "2")], "doubled"),
        ({"a": ""}, [("a", "1")], "leaked: no custom resource records it"),
        ({}, [("a", "1")], "leaked: no custom resource records it"),
        ({}, [("a", "1"), ("a", "2")], "doubled"),
    ],
)
def test_each_difference_between_a_resource_and_its_cloud_is_named(
    recorded: dict[str, str], held: list[tuple[str, str]], problem: str
) -> None:
    [line] = compare("server", recorded, held)
    assert line.problem == problem


class Shown:
    """A stage that records what it is shown."""

    kube = deployment = emulator = None

    def __init__(self) -> None:
        self.said: list[str] = []
        self.results: list[str] = []

    def say(self, line: str) -> None:
        self.said.append(line)

    def present(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        self.results = [row[-1] for row in rows]


@pytest.mark.parametrize(
    ("held", "result", "ends"),
    [
        ("1", "agreed", nullcontext()),
        ("2", "another one than recorded", pytest.raises(UnsettledError, match="server of a: recorded 1, held 2: ano")),
    ],
)
async def test_the_demo_fails_where_clouds_and_custom_resources_differ(
    monkeypatch: pytest.MonkeyPatch, held: str, result: str, ends: AbstractContextManager[object]
) -> None:
    async def found(*_: object) -> list[Comparison]:
        return compare("server", {"a": "1"}, [("a", held)])

    monkeypatch.setattr(resilience, "audit", found)
    monkeypatch.setattr(resilience, "AUDIT_SECONDS", 0)
    stage = Shown()
    with ends:
        await resilience.compare_with_clouds(cast("Stage", stage))
    assert stage.results == [result]
    assert [line for line in stage.said if "one to one" in line] == stage.said


def test_an_owner_for_which_neither_side_has_anything_is_left_out() -> None:
    assert compare("support case", {"a": "", "b": "1"}, [("b", "1")]) == compare(
        "support case", {"b": "1"}, [("b", "1")]
    )


def test_two_things_of_one_id_are_doubled_too() -> None:
    [line] = compare("claimed resource", {"handle [0]": "exam-1"}, [("handle [0]", "exam-1"), ("handle [0]", "exam-1")])
    assert line.problem == "doubled"


@pytest.mark.parametrize(("reused", "problems"), [(True, []), (False, ["leaked: no custom resource records it"])])
def test_a_release_clears_the_recorded_support_case_and_nothing_else_does(reused: bool, problems: list[str]) -> None:
    without = account(status={"state": "Ready", "reused": reused})
    lines = support_cases([without], [(without.metadata.name, "case-1")])
    assert [line.problem for line in lines] == problems


@pytest.mark.parametrize(
    ("why", "text"),
    [
        (Why(object="a", phase="Creating", outcome="working", why="", running=("create the AWS account",)), "create"),
        (Why(object="a", phase="Pending", outcome="waiting", why="waits for the support case"), "waits for"),
        (
            Why(object="a", phase="Initializing", outcome="working", why="", running=tuple("abcde")),
            "a; b; c and 2 more",
        ),
        (Why(object="a", phase="Ready", outcome="settled", why=""), "Ready, nothing left to do"),
    ],
)
def test_the_next_step_of_a_lifecycle_is_shown_in_its_own_words(why: Why, text: str) -> None:
    assert next_step(why).startswith(text)


def test_a_lifecycle_whose_history_is_replayed_says_nothing() -> None:
    assert next_step(Why(object="a", phase="Unknown", outcome="working", why="not observed yet")) == ""
