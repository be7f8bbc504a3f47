"""Parameter values of a claim in provider mode: completed, validated, accepted or rejected.

Accepted values stay in the claim's `status.provider.parameterValues` even if they are removed from the spec, if they
would be refused today, or if their parameter is gone. An unchanged value is never validated again, a rendered default
(a generated password) stays, and a rejected edit changes nothing. Defaults are not written into the spec. A provider's
faults are among the errors, so that a claim always shows why it waits. Clients compare the errors' texts, which are
Poolboy's.
"""

from __future__ import annotations

from typing import NamedTuple

from pydantic import JsonValue

from domain.claims.deep_merge import same
from domain.claims.json_objects import JsonObject, object_at, objects_at, present, text_at, value_at
from domain.claims.schema_validation import SchemaError, violation
from domain.claims.template_variables import Scene
from domain.claims.templates.errors import TemplateError
from domain.claims.templates.views import default_value


class Settled(NamedTuple):
    """The spec's values, completed with accepted values and defaults. They are refused if there are `errors`: of
    defaults, of declared parameters and of unknown parameters, in this order.
    """

    values: JsonObject
    errors: tuple[str, ...] = ()


def recorded_provider(claim: JsonObject, handle: JsonObject | None) -> JsonObject:
    """The claim's `status.provider`; values that it has lost are taken from the handle."""
    name, held = text_at(claim, "spec", "provider", "name"), object_at(handle, "spec", "provider")
    recorded: JsonObject = {**object_at(claim, "status", "provider"), "name": name}
    values = held.get("parameterValues")
    lost = _accepted(claim) is None and isinstance(values, dict) and text_at(held, "name") == name
    return {**recorded, "parameterValues": values} if lost else recorded


def settle_parameters(scene: Scene, provider: JsonObject) -> Settled:
    return _Settling(scene, provider).settle()


def provider_status(claim: JsonObject, settled: Settled) -> JsonObject:
    """The new `status.provider`, complete. After a rejected edit, it has the errors and the values accepted before."""
    name = text_at(claim, "spec", "provider", "name")
    if not settled.errors:
        return {"name": name, "parameterValues": settled.values}
    return {"name": name, **present(parameterValues=_accepted(claim), validationErrors=[*settled.errors])}


def _accepted(claim: JsonObject | None) -> JsonObject | None:
    values = value_at(claim, "status", "provider", "parameterValues")
    return values if isinstance(values, dict) else None


class _Settling:
    def __init__(self, scene: Scene, provider: JsonObject) -> None:
        self.scene = scene
        self.provider_name = text_at(provider, "metadata", "name")
        self.parameters = [item for item in objects_at(provider, "spec", "parameters") if text_at(item, "name")]
        self.vars = scene.vars(provider)
        self.views = scene.views(provider)
        self.accepted = _accepted(scene.claim)
        self.values: JsonObject = dict(object_at(scene.claim, "spec", "provider", "parameterValues"))
        self.defaulted: set[str] = set()
        self.errors: list[str] = []

    def settle(self) -> Settled:
        for parameter in self.parameters:
            if parameter["name"] not in self.values:
                self._complete(parameter)
        for parameter in self.parameters:
            self._judge(parameter)
        self._refuse_unknown()
        return Settled({**(self.accepted or {}), **self.values}, tuple(self.errors))

    def _complete(self, parameter: JsonObject) -> None:
        name = text_at(parameter, "name")
        if self.accepted is not None and name in self.accepted:
            self.values[name] = self.accepted[name]
            return
        given, value = default_value(parameter)
        template = text_at(parameter, "default", "template")
        if template:
            given, value = self._render(name, template)
        if given:
            self.values[name] = value
            self.defaulted.add(name)

    def _render(self, name: str, template: str) -> tuple[bool, JsonValue]:
        what = f"ResourceProvider {self.provider_name}, default of parameter {name}"
        try:
            variables = {**self.views, **self.values}
            return True, self.scene.renderer.render(template, variables, what=what, lazy=self.vars)
        except TemplateError as error:
            self.errors.append(f"Parameter {name} exception on default: {error.text}")
            return False, None

    def _judge(self, parameter: JsonObject) -> None:
        name = text_at(parameter, "name")
        if name not in self.values:
            if value_at(parameter, "required") is True:
                self.errors.append(f"Parameter {name} is required.")
            return
        if self.accepted is not None:
            if self._was_accepted(name) or name in self.defaulted:
                return
            if value_at(parameter, "allowUpdate") is not True:
                self.errors.append(f"Parameter {name} is immutable.")
                return
        self._validate(parameter, name)

    def _validate(self, parameter: JsonObject, name: str) -> None:
        value = self.values[name]
        schema = value_at(parameter, "validation", "openAPIV3Schema")
        what = f"ResourceProvider {self.provider_name}, schema of parameter {name}"
        try:
            text = None if schema is None else violation(schema, value, what)
        except SchemaError as error:
            text = str(error)
        if text is not None:
            self.errors.append(f"Parameter {name} schema validation failed: {text}")
            return
        for check in objects_at(parameter, "validation", "checks"):
            self._check(name, value, text_at(check, "name"), text_at(check, "check"))

    def _check(self, name: str, value: JsonValue, check: str, expression: str) -> None:
        what = f"ResourceProvider {self.provider_name}, parameter {name}, check {check}"
        try:
            variables = {**self.views, **self.values, "value": value}
            if not self.scene.renderer.condition(expression, variables, what=what, lazy=self.vars):
                self.errors.append(f"Parameter {name} failed check: {check}")
        except TemplateError as error:
            self.errors.append(f"Parameter {name} exception on check {check}: {error.text}")

    def _refuse_unknown(self) -> None:
        declared = {text_at(parameter, "name") for parameter in self.parameters}
        for name in self.values:
            if name not in declared and not self._was_accepted(name):
                self.errors.append(f"No such parameter {name}.")

    def _was_accepted(self, name: str) -> bool:
        return self.accepted is not None and name in self.accepted and same(self.accepted[name], self.values[name])
