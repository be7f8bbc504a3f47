"""Parameter values of claims in provider mode, and approval: what is accepted, what is refused, and in which words."""

from __future__ import annotations

from typing import Any

import pytest

from claims.claims_ground import PROMPT, Ground
from claims.claims_objects import Json, look
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

ALL_OF_SPEC = [{"pathMatch": "/spec/.*"}]


async def provider_with(ground: Ground, *parameters: Json, **spec: Any) -> None:
    """A provider of Gadgets that show every value in their spec."""
    shown = {each["name"]: f"{{{{ {each['name']} | default(omit) | object }}}}" for each in parameters}
    await ground.provider(
        "lab",
        override=ground.gadget(),
        parameters=list(parameters),
        template={"definition": {"spec": shown}},
        updateFilters=ALL_OF_SPEC,
        readinessCheck="true",
        **spec,
    )


def accepted(ground: Ground) -> object:
    return look(ground.claim(), "status.provider.parameterValues")


def errors(ground: Ground) -> list[str]:
    return look(ground.claim(), "status.provider.validationErrors") or []


async def refused(ground: Ground, *texts: str) -> None:
    await ground.until(f"refused with {texts}", lambda: errors(ground) == list(texts), PROMPT)


async def test_missing_values_are_completed_from_values_schemas_and_templates(ground: Ground) -> None:
    await provider_with(
        ground,
        {"name": "size", "default": {"value": 2}},
        {"name": "colour", "validation": {"openAPIV3Schema": {"type": "string", "default": "blue"}}},
        {"name": "double", "default": {"template": "{{ size * 2 | int }}", "value": 0}},
        {"name": "label", "default": {"template": "{{ colour }}-{{ resource_claim.metadata.name }}"}},
        {"name": "flags", "default": {"value": {"a": True, "b": [1, None]}}},
        {"name": "optional"},
    )
    await ground.ask("mine", provider="lab", values={"colour": "red"})
    await ground.ready()
    complete = {"size": 2, "colour": "red", "double": 4, "label": "red-mine", "flags": {"a": True, "b": [1, None]}}
    assert accepted(ground) == complete
    assert ground.resource()["spec"] == complete
    assert look(ground.handle(), "spec.provider.parameterValues") == complete


async def test_a_template_in_the_vars_of_a_provider_is_rendered(ground: Ground) -> None:
    await ground.provider(
        "lab",
        override=ground.gadget(),
        parameters=[],
        vars={"base": "lab", "url": "https://{{ base }}.example.com"},
        template={"definition": {"spec": {"url": "{{ url }}"}}},
        readinessCheck="true",
    )
    await ground.ask("mine", provider="lab", values={})
    await ground.ready()
    assert ground.resource()["spec"] == {"url": "https://lab.example.com"}


async def test_values_are_refused_in_the_words_that_clients_compare_and_nothing_is_made(ground: Ground) -> None:
    await provider_with(
        ground,
        {"name": "size", "validation": {"openAPIV3Schema": {"type": "integer", "maximum": 9}}},
        {
            "name": "colour",
            "validation": {
                "checks": [
                    {"name": "known", "check": "value in ['red', 'blue']"},
                    {"name": "short", "check": "value | length < 5"},
                    {"name": "odd", "check": "value.nothing.at_all()"},
                ]
            },
        },
        {"name": "owner", "required": True},
    )
    await ground.ask("mine", provider="lab", values={"size": 10, "colour": "orange", "nope": 1})
    await ground.until("it is refused", lambda: errors(ground), PROMPT)
    schema, known, short, odd, owner, unknown = errors(ground)
    assert schema.startswith("Parameter size schema validation failed: 10 is greater than the maximum of 9")
    assert (known, short) == ("Parameter colour failed check: known", "Parameter colour failed check: short")
    assert odd.startswith("Parameter colour exception on check odd: ")
    assert (owner, unknown) == ("Parameter owner is required.", "No such parameter nope.")
    assert set(ground.claim()["status"]) <= {"provider", "conditions"}
    assert set(look(ground.claim(), "status.provider")) == {"name", "validationErrors"}
    assert ground.handles() == []


async def test_corrected_values_are_served_at_once_and_the_errors_vanish(ground: Ground) -> None:
    await provider_with(ground, {"name": "size", "validation": {"checks": [{"name": "small", "check": "value < 5"}]}})
    await ground.ask("mine", provider="lab", values={"size": 7, "typo": 1})
    await refused(ground, "Parameter size failed check: small", "No such parameter typo.")
    await ground.choose(size=3, typo=None)
    await ground.ready(seconds=PROMPT)
    assert look(ground.claim(), "status.provider") == {"name": ground.named("lab"), "parameterValues": {"size": 3}}


async def test_an_immutable_value_is_refused_and_changes_nothing_until_it_is_put_back(ground: Ground) -> None:
    await provider_with(ground, {"name": "size"}, {"name": "colour", "allowUpdate": True})
    await ground.ask("mine", provider="lab", values={"size": 1, "colour": "red"})
    await ground.ready()
    await ground.choose(size=2, colour="blue")
    await refused(ground, "Parameter size is immutable.")
    # Nothing of a refused edit is carried out, the part that would be allowed included.
    assert accepted(ground) == {"size": 1, "colour": "red"}
    await ground.others_go_on()
    assert ground.resource()["spec"] == {"size": 1, "colour": "red"}
    assert look(ground.handle(), "spec.provider.parameterValues") == {"size": 1, "colour": "red"}
    await ground.choose(size=1)
    await ground.until("the rest is carried out", lambda: look(ground.resource(), "spec.colour") == "blue", PROMPT)
    await ground.until("no errors", lambda: "validationErrors" not in look(ground.claim(), "status.provider"), PROMPT)


async def test_an_allowed_change_reaches_handle_and_live_resource_at_once(ground: Ground) -> None:
    await provider_with(ground, {"name": "size", "allowUpdate": True}, {"name": "colour", "default": {"value": "red"}})
    await ground.ask("mine", provider="lab", values={"size": 1})
    await ground.ready()
    handle, gadget = ground.handle_name(), ground.resource()
    await ground.choose(size=2)
    await ground.until(
        "the state on the claim has it", lambda: look(ground.claim(), "status.resources.0.state.spec.size") == 2, PROMPT
    )
    assert look(ground.handle(), "spec.provider.parameterValues") == {"size": 2, "colour": "red"}
    assert look(ground.handle(), "spec.resources.0.template.spec") == {"size": 2, "colour": "red"}
    assert ground.handle_name() == handle
    assert look(ground.resource(), "metadata.uid") == look(gadget, "metadata.uid")


async def test_a_removed_value_keeps_what_was_accepted_last(ground: Ground) -> None:
    await provider_with(ground, {"name": "size", "allowUpdate": True, "default": {"value": 1}}, {"name": "colour"})
    await ground.ask("mine", provider="lab", values={"size": 3, "colour": "red"})
    await ground.ready()
    await ground.edit_claim(provider={"parameterValues": None})
    await ground.others_go_on()
    assert accepted(ground) == {"size": 3, "colour": "red"}
    assert errors(ground) == []
    assert ground.resource()["spec"] == {"size": 3, "colour": "red"}


async def test_a_generated_default_is_computed_once(ground: Ground) -> None:
    password: Json = {"name": "password", "default": {"template": "{{ '[a-z]{12}' | strgen }}"}}
    await provider_with(ground, password, {"name": "size", "allowUpdate": True, "default": {"value": 1}})
    await ground.ask("mine", provider="lab")
    await ground.ready()
    generated = look(ground.claim(), "status.provider.parameterValues.password")
    assert len(generated) == 12
    await ground.choose(size=2)
    await ground.until("the change is there", lambda: look(ground.resource(), "spec.size") == 2, PROMPT)
    assert look(ground.claim(), "status.provider.parameterValues.password") == generated
    assert look(ground.resource(), "spec.password") == generated


async def test_list_mode_templates_are_held_against_schema_and_checks(ground: Ground) -> None:
    await ground.provider(
        "lab",
        override=ground.gadget(),
        readinessCheck="true",
        validation={
            "openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "required": ["size"]}}},
            "checks": [{"name": "size is small", "check": "spec.size < limit"}],
        },
        vars={"limit": 5},
    )
    provider = {"name": ground.named("lab")}
    await ground.ask("mine", resources=[{"provider": provider, "template": {"spec": {"colour": "red"}}}])

    def error() -> str:
        return str(look(ground.claim(), "status.resources.0.validationError") or "")

    await ground.until("the schema refuses", lambda: "'size' is a required property" in error(), PROMPT)
    assert ground.handles() == []
    await ground.edit_claim(resources=[{"provider": provider, "template": {"spec": {"size": 7}}}])
    await ground.until("the check refuses", lambda: error() == "Validation check failed: size is small", PROMPT)
    await ground.edit_claim(resources=[{"provider": provider, "template": {"spec": {"size": 2}}}])
    await ground.ready(seconds=PROMPT)
    assert "validationError" not in look(ground.claim(), "status.resources.0")
    assert look(ground.resource(), "spec.size") == 2


async def test_a_limit_raised_in_the_handles_vars_clears_the_refusal(ground: Ground) -> None:
    limited: Json = {
        "name": "size",
        "allowUpdate": True,
        "validation": {"checks": [{"name": "within limit", "check": "value <= limit"}]},
    }
    await provider_with(ground, limited, vars={"limit": 2})
    await ground.ask("mine", provider="lab", values={"size": 1})
    await ground.ready()
    await ground.choose(size=5)
    await refused(ground, "Parameter size failed check: within limit")
    await ground.edit(RESOURCE_HANDLE, ground.handle_name(), {"spec": {"vars": {"limit": 9}}})
    await ground.until("it is accepted", lambda: accepted(ground) == {"size": 5}, PROMPT)
    await ground.until("it is carried out", lambda: look(ground.resource(), "spec.size") == 5, PROMPT)


async def test_a_claim_is_pending_until_an_approver_says_so_and_served_at_once_then(ground: Ground) -> None:
    await ground.provider(
        "lab",
        override=ground.gadget(),
        readinessCheck="true",
        approval={"required": True, "pendingMessage": "Ask Ada."},
    )
    await ground.ask("mine", provider="lab")
    await ground.until("it is pending", lambda: look(ground.claim(), "status.approval"), PROMPT)
    assert look(ground.claim(), "status.approval") == {"state": "pending", "message": "Ask Ada."}
    assert not {"lifespan", "resourceHandle", "resources", "summary"} & ground.claim()["status"].keys()
    assert ground.handles() == []
    await approve(ground, "approved", "fine")
    await ground.ready(seconds=PROMPT)
    assert look(ground.claim(), "status.approval") == {"state": "approved", "message": "fine"}


async def test_a_rejected_claim_gets_nothing_until_the_approver_thinks_again(ground: Ground) -> None:
    await ground.provider("lab", override=ground.gadget(), readinessCheck="true", approval={"required": True})
    await ground.ask("mine", provider="lab")
    await ground.until(
        "it is pending", lambda: look(ground.claim(), "status.approval.message") == "Approval pending.", PROMPT
    )
    await approve(ground, "rejected", "too dear")
    await ground.others_go_on()
    assert look(ground.claim(), "status.approval") == {"state": "rejected", "message": "too dear"}
    assert look(ground.claim(), "status.resourceHandle") is None
    await approve(ground, "approved", "well then")
    await ground.ready(seconds=PROMPT)


async def approve(ground: Ground, state: str, message: str) -> None:
    """What an outside approver does: it patches nothing but the status."""
    await ground.edit(
        RESOURCE_CLAIM, "mine", {"status": {"approval": {"state": state, "message": message}}}, status=True
    )


async def test_a_claim_that_has_its_handle_needs_no_approval_any_more(ground: Ground) -> None:
    await provider_with(ground, {"name": "size", "allowUpdate": True})
    await ground.ask("mine", provider="lab", values={"size": 1})
    await ground.ready()
    await ground.edit_provider(approval={"required": True})
    await ground.choose(size=2)
    await ground.until("the change is carried out", lambda: look(ground.resource(), "spec.size") == 2)
