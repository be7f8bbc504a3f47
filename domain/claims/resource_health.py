"""Health, readiness and waits of a handle's resources, each and overall, for its status.

If a value is unknown, its field is absent. Resources that cannot be read keep their values. If a check cannot be
evaluated, its result is unknown, because new objects often lack the checked fields; the error texts are for people.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from domain.claims.json_objects import JsonObject, entry_at, flag_at, object_at, objects_at, present, text_at, without
from domain.claims.linked_providers import Resources
from domain.claims.references import provider_name
from domain.claims.template_variables import Scene
from domain.claims.templates.errors import TemplateError
from domain.model import Model

_HANDLE_FIELDS = ("healthy", "ready", "summary", "resources")
_ENTRY_FIELDS = ("healthy", "name", "ready", "reference", "waitingFor")


class Health(Model):
    healthy: bool | None = None
    ready: bool | None = None


class HandleStatus(Model):
    status: dict[str, JsonValue]
    faults: tuple[str, ...] = ()


def resource_health(scene: Scene, provider: JsonObject, state: JsonObject | None) -> tuple[Health, list[str]]:
    if state is None:
        return Health(ready=False), []
    healthy, faults = _checked(scene, provider, state, "healthCheck")
    if healthy is False:
        return Health(healthy=False, ready=False), faults
    ready, more = _checked(scene, provider, state, "readinessCheck")
    return Health(healthy=healthy, ready=ready), faults + more


def health_at(resources: Resources, index: int) -> tuple[Health, list[str]]:
    """The resource's health and the errors of its checks. The recorded health is returned for a resource that
    cannot be read, or that exists without its provider.
    """
    state = resources.state(index)
    provider = resources.scene.providers.get(provider_name(resources.entries[index]))
    if index in resources.question.unreadable or (provider is None and state is not None):
        before = entry_at(objects_at(resources.handle, "status", "resources"), index)
        return Health(healthy=flag_at(before, "healthy"), ready=flag_at(before, "ready")), []
    return resource_health(resources.scene, provider or {}, state)


def _checked(scene: Scene, provider: JsonObject, state: JsonObject, check: str) -> tuple[bool | None, list[str]]:
    expression = text_at(provider, "spec", check)
    if not expression:
        return None, []
    what = f"ResourceProvider {text_at(provider, 'metadata', 'name')}, {check}"
    try:
        variables = {**state, "resource_handle": scene.handle_view}
        return scene.renderer.condition(expression, variables, what=what, lazy=scene.newer_vars(provider)), []
    except TemplateError as error:
        return None, [str(error)]


def overall(each: Iterable[bool | None]) -> bool | None:
    found = list(each)
    if any(one is False for one in found):
        return False
    return True if found and all(found) else None


def handle_status(resources: Resources, waits: Sequence[str | None]) -> HandleStatus:
    """The handle's new status. `waits` has what each resource waits for, or None. Other fields stay."""
    before = object_at(resources.handle, "status")
    entries_before = objects_at(before, "resources")
    faults: list[str] = []
    entries: list[JsonObject] = []
    for index, entry in enumerate(resources.entries):
        health, more = health_at(resources, index)
        faults += more
        remaining = without(entry_at(entries_before, index), _ENTRY_FIELDS)
        shown = present(
            healthy=health.healthy,
            name=entry.get("name"),
            ready=health.ready,
            reference=resources.recorded(index) or None,
            waitingFor=waits[index] if index < len(waits) else None,
        )
        entries.append({**remaining, **shown})
    summary, fault = _summary(resources)
    status = present(
        healthy=overall(flag_at(entry, "healthy") for entry in entries),
        ready=overall(flag_at(entry, "ready") for entry in entries),
        summary=summary,
        resources=[*entries] if entries or entries_before else None,
    )
    return HandleStatus(status={**without(before, _HANDLE_FIELDS), **status}, faults=(*faults, *fault))


def _summary(resources: Resources) -> tuple[JsonValue, list[str]]:
    handle = resources.handle
    entries = resources.entries
    name = text_at(handle, "spec", "provider", "name") or next((provider_name(entry) for entry in entries[-1:]), "")
    provider = resources.scene.providers.get(name)
    if name and provider is None:
        return object_at(handle, "status").get("summary"), [f"ResourceProvider {name}: not found"]
    template = object_at(provider, "spec", "statusSummaryTemplate")
    if not template:
        return None, []
    variables: dict[str, object] = {
        **object_at(handle, "spec", "provider", "parameterValues"),
        "resource_handle": resources.scene.handle_view,
        "resource_claim": None,
        "resources": [{**entry, "state": resources.state(index)} for index, entry in enumerate(entries)],
    }
    try:
        what = f"ResourceProvider {name}, statusSummaryTemplate"
        weaker = object_at(provider, "spec", "vars")
        return resources.scene.renderer.render(template, variables, what=what, lazy=weaker), []
    except TemplateError as error:
        return object_at(handle, "status").get("summary"), [str(error)]
