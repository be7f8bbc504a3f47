"""A workflow changed since the last release has a history recorded since, or a new version to run under."""

from __future__ import annotations

from tests.replay.fingerprints import Code, Release, changed, fingerprint, last_release, now, unproved

BEFORE = Release(version="1.0.0", workflows={"Account": Code(fingerprint="a", histories=("Account-one",))})


def altered(version: str = "1.0.0", *histories: str) -> Release:
    return Release(version=version, workflows={"Account": Code(fingerprint="b", histories=("Account-one", *histories))})


def test_no_workflow_is_changed_without_a_proof() -> None:
    changed_workflows = unproved(last_release(), now())
    assert changed_workflows == [], (
        "the code of these workflows is not the released one. Record a history with the released code (docs/"
        "development.md, Changing a workflow), or give the project a new version, under which lifecycles are pinned"
    )


def test_every_workflow_has_a_fingerprint_of_its_own_code() -> None:
    found = now().workflows
    assert {"Account", "ResourceClaim", "LoadBalancer", "Product", "Ec2Instance"} <= set(found)
    assert len({code.fingerprint for code in found.values()}) > 10


def test_a_changed_workflow_needs_a_new_history_or_a_new_version() -> None:
    assert changed(BEFORE, altered()) == unproved(BEFORE, altered()) == ["Account"]
    assert unproved(BEFORE, altered("1.0.0", "Account-two")) == []
    assert unproved(BEFORE, altered("1.1.0")) == []


def test_unchanged_and_new_workflows_need_none() -> None:
    more = Release(version="1.0.0", workflows={**BEFORE.workflows, "Pool": Code(fingerprint="c")})
    assert changed(BEFORE, more) == []


def test_comments_and_layout_are_no_change_and_code_is() -> None:
    plain = fingerprint(['def f():\n    """Old words."""\n    return 1\n'])
    assert fingerprint(['def f():\n    """New words."""\n    # why\n    return (1)\n']) == plain
    assert fingerprint(["def f():\n    return 2\n"]) != plain
