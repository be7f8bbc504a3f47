"""A sweep lets others go on while it compares the objects of a project, and a fault in one place stops no other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

import pytest
from lb_objects import ago, balancer
from temporalio.testing import ActivityEnvironment

from activities.loadbalancers import drift_sweep as module
from activities.loadbalancers import metrics
from activities.loadbalancers.drift_sweep import SweepActivities
from activities.loadbalancers.pass_context import PassContext
from activities.openstack.observation import ProjectCloud
from activities.openstack.session import Project
from domain.identity import Key
from domain.loadbalancers.passes import SweepProjects
from domain.loadbalancers.project import ProjectReference
from domain.loadbalancers.resources import LoadBalancer
from engine.errors import Denied
from engine.settings import Settings

MANY = 10


class Opened(NamedTuple):
    """A project by the Secret that opens it; both Secrets here open the same one."""

    secret: str
    place: tuple[str, ...] = ("project",)


class Scene:
    """Load balancers of one project that are as they should be, and which of them were compared between two breaks."""

    def __init__(self) -> None:
        self.settings = Settings()
        self.projects = self
        self.runs = [0]
        self.woken: list[str] = []
        self.why = ""

    async def leads(self, kind: object) -> str:
        return ""

    async def everywhere(self, model: type) -> tuple[LoadBalancer, ...]:
        names = range(MANY) if model is LoadBalancer else ()
        status = {"lastOpenstackReconcile": ago(minutes=1)}
        spec = {"infrastructure": {"authSecretRef": {"name": "former"}}}
        return tuple(
            balancer(metadata={"name": f"web-{each}", "uid": f"uid-{each}"}, status=status, spec={} if each else spec)
            for each in names
        )

    def project(self, reference: ProjectReference) -> Project:
        return cast(Project, Opened(reference.secret))

    def hold(self, meta: object) -> str:
        return ""

    async def patch(self, kind: object, namespace: str, name: str, patch: object) -> None:
        if name == "web-0":
            raise Denied("a webhook refuses it")
        self.woken.append(name)

    def difference(self, *_: Any) -> str:
        self.runs[-1] += 1
        return ""

    async def others(self) -> None:
        while True:
            if self.runs[-1]:
                self.runs.append(0)
            await asyncio.sleep(0)

    async def swept(self) -> Sequence[int]:
        environment = ActivityEnvironment()
        environment.info = replace(environment.info, started_time=datetime.now(UTC))
        key = Key(kind="Sweep", namespace="", name="projects", uid="")
        others = asyncio.create_task(self.others())
        sweep = SweepActivities(cast(PassContext, self)).sweep_projects
        self.why = (await environment.run(sweep, SweepProjects(key=key))).decision.why
        others.cancel()
        return self.runs


async def test_others_go_on_between_the_objects_of_one_project(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    monkeypatch.setattr(metrics, "SWEEPS", metrics.SweepCount())
    monkeypatch.setattr(module, "TOGETHER", 4)
    monkeypatch.setattr(module, "difference_of_balancer", scene.difference)
    monkeypatch.setattr(module, "observe_project", lambda _: ProjectCloud())
    assert [each for each in await scene.swept() if each] == [3, 4, 3]


async def test_an_object_that_cannot_be_woken_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    monkeypatch.setattr(metrics, "SWEEPS", metrics.SweepCount())
    monkeypatch.setattr(module, "difference_of_balancer", lambda *_: "it differs")
    monkeypatch.setattr(module, "observe_project", lambda _: ProjectCloud())
    await scene.swept()
    assert scene.woken == [f"web-{each}" for each in range(1, MANY)]
    assert scene.why == f"1 projects were compared, {MANY} of {MANY} objects differed; a webhook refuses it"


async def test_credentials_that_are_refused_hide_no_project_that_others_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def observe(project: Opened) -> ProjectCloud:
        if project.secret == "former":
            raise Denied("Keystone rejects these credentials")
        return ProjectCloud()

    scene = Scene()
    monkeypatch.setattr(metrics, "SWEEPS", metrics.SweepCount())
    monkeypatch.setattr(module, "difference_of_balancer", scene.difference)
    monkeypatch.setattr(module, "observe_project", observe)
    assert sum(await scene.swept()) == MANY
    assert scene.why.endswith("0 of 10 objects differed; Keystone rejects these credentials")
