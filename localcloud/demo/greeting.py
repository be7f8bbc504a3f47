"""`perdure demo greeting`: a lifecycle of another package, `examples/greeting`, served by Perdure."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from domain.built_in_kinds import CONFIG_MAP
from domain.identity import Kind
from engine.kube.json import JsonObject, text
from localcloud.demo.stage import FIELD_MANAGER, Scenario, Stage, Waiting, since
from localcloud.objects import Objects
from localcloud.state import Cloud

GREETING = Kind(name="Greeting", group="greetings.example.com", version="v1", plural="greetings", area="greetings")
NAMESPACE, NAME = "default", "hello"
LIVES = timedelta(seconds=3)


async def play(stage: Stage) -> None:
    config_maps = Objects(stage.kube)
    await stage.delete(GREETING, NAMESPACE, NAME)
    await stage.until("no greeting is left from an earlier run", lambda: _greeting(stage) is None)
    async with config_maps.followed(CONFIG_MAP):

        def shown() -> str:
            return text(config_maps.one(CONFIG_MAP, NAMESPACE, NAME), "data", "text")

        await stage.apply("greeting.yaml")
        await config_maps.until(lambda: shown() == "good morning")
        stage.say("Applied greeting.yaml: its text is shown in ConfigMap default/hello")
        await stage.breathe()
        await _change(stage, {"text": "good evening"})
        await config_maps.until(lambda: shown() == "good evening")
        stage.say("Changed the text: the ConfigMap follows")
        await stage.breathe()
        await stage.delete(CONFIG_MAP, NAMESPACE, NAME)
        await config_maps.until(lambda: not shown())
        await config_maps.until(lambda: shown() == "good evening")
        stage.say("Deleted the ConfigMap: it is written again")
        until, began = datetime.now(UTC) + LIVES, time.monotonic()
        await _change(stage, {"until": until.isoformat()})
        await config_maps.until(lambda: not shown())
        await stage.until("the greeting's time is over", lambda: look(_greeting(stage)).phase == "Over")
        stage.say(f"Set `until` to {LIVES.total_seconds():g} s later: the ConfigMap was gone after {since(began)}")


async def _change(stage: Stage, spec: JsonObject) -> None:
    await stage.kube.patch(GREETING, NAMESPACE, NAME, {"spec": spec}, field_manager=FIELD_MANAGER)


def _greeting(stage: Stage) -> JsonObject | None:
    return stage.objects.one(GREETING, NAMESPACE, NAME)


def look(obj: JsonObject | None) -> Waiting:
    return Waiting(phase=text(obj, "status", "phase"))


def failure(obj: JsonObject) -> str:
    return ""


SCENARIO = Scenario(
    title="Greetings: a lifecycle from a separate package, as durable, plannable and explainable as all others",
    clouds=(Cloud.AWS,),
    kinds=(GREETING,),
    play=play,
    failure=failure,
    areas=("greetings",),
    hints=(
        "kubectl get greetings -A",
        "perdure why greeting default/hello",
        'kubectl patch greeting hello --type merge -p \'{"spec": {"until": null, "text": "hello again"}}\'',
    ),
    look=look,
    package=True,
)
