"""`perdure install migrate nth`: the values of the AWS Node Termination Handler's chart as an InterruptionPolicy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from openapi_schema_validator import validate
from typer.testing import CliRunner

from domain.custom_resources import crd_of
from domain.instances.node_termination_handler_migration import Migrated, policy_of_nth
from domain.instances.resources import InterruptionPolicy
from domain.operator_domain import DEFAULT
from starters.cli.main import build
from starters.cli.output import CommandError

SCHEMA: Any = crd_of(InterruptionPolicy, DEFAULT)["spec"]
QUEUED = {"enableSqsTerminationDraining": True}


def migrated(**values: Any) -> Migrated:
    found = policy_of_nth(values, "nth")
    validate(found.policy, SCHEMA["versions"][0]["schema"]["openAPIV3Schema"])
    return found


def spec(**values: Any) -> Any:
    return migrated(**values).policy["spec"]


def test_the_defaults_of_the_queue_mode_drain_what_is_tagged() -> None:
    assert spec(**QUEUED) == {
        "selector": {"tags": {"aws-node-termination-handler/managed": "*"}},
        "reactions": {
            "spot": "drain",
            "ending": "drain",
            "reboot": "drain",
            "maintenance": "drain",
            "terminated": "drain",
            "stopped": "drain",
            "terminatingHook": "drain",
        },
        "drain": {"nodeGracePeriodSeconds": 120, "doNotDisrupt": "Ignore"},
        "maintenanceLeadSeconds": 120,
    }


@pytest.mark.parametrize(
    ("values", "path", "expected"),
    [
        ({"cordonOnly": True}, ("reactions", "stopped"), "cordon"),
        ({"cordonOnly": "true"}, ("reactions", "spot"), "cordon"),
        ({"enableSpotInterruptionDraining": False}, ("reactions", "spot"), "label"),
        ({"enableScheduledEventDraining": "false"}, ("reactions", "reboot"), "label"),
        ({"enableSpotInterruptionDraining": ""}, ("reactions", "spot"), "drain"),
        ({"checkTagBeforeDraining": False}, ("selector",), None),
        ({"checkASGTagBeforeDraining": False}, ("selector",), None),
        ({"managedTag": "acme/managed"}, ("selector", "tags"), {"acme/managed": "*"}),
        ({"managedAsgTag": "acme/old"}, ("selector", "tags"), {"acme/old": "*"}),
        ({"taintNode": True}, ("taint",), {"nodeTerminationHandlerNames": True, "effect": "NoSchedule"}),
        ({"taintNode": True, "taintEffect": "NoExecute"}, ("taint", "effect"), "NoExecute"),
        ({"podTerminationGracePeriod": 30}, ("drain", "podGracePeriodSeconds"), 30),
        ({"podTerminationGracePeriod": "-1"}, ("drain", "podGracePeriodSeconds"), None),
        ({"gracePeriod": 40}, ("drain", "podGracePeriodSeconds"), 40),
        ({"nodeTerminationGracePeriod": "300"}, ("maintenanceLeadSeconds",), 300),
        ({"heartbeatInterval": 60}, ("heartbeatSeconds",), 60),
        ({"heartbeatUntil": 3600}, ("hookLimitSeconds",), 3600),
    ],
)
def test_each_value_has_its_field(values: dict[str, Any], path: tuple[str, ...], expected: object) -> None:
    found: Any = spec(**QUEUED | values)
    for step in path:
        found = found.get(step) if found is not None else None
    assert found == expected


def test_without_a_queue_only_what_the_handler_hears_of_is_reacted_to() -> None:
    found = migrated()
    said: Any = found.policy["spec"]
    assert set(said["reactions"]) == {"spot", "ending", "reboot", "maintenance"}
    assert "selector" not in said
    assert any(note.startswith("enableSqsTerminationDraining is off") for note in found.notes)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"enableRebalanceDraining": True}, "enableRebalanceDraining: EC2 has no call"),
        ({"excludeFromLoadBalancers": True}, "excludeFromLoadBalancers: Nodes get no label"),
        ({"brandNew": 1}, "brandNew: this value is not known here"),
        (
            {"queueURL": "https://sqs.eu-central-1.amazonaws.com/123456789012/nodes"},
            "queueURL: PERDURE_INSTANCES_QUEUES=123456789012/eu-central-1/nodes",
        ),
        ({"queueURL": "nodes"}, "queueURL: nodes is not the URL of a queue"),
    ],
)
def test_what_has_no_counterpart_is_said(values: dict[str, Any], said: str) -> None:
    assert any(note.startswith(said) for note in migrated(**QUEUED | values).notes)


@pytest.mark.parametrize("values", [{}, {"enableRebalanceDraining": False}, {"workers": 10, "image": {"tag": "v1"}}])
def test_nothing_is_said_of_what_changes_nothing(values: dict[str, Any]) -> None:
    assert migrated(**QUEUED | values).notes == ()


WEBHOOK = {
    "webhookURL": "https://hooks.example.com/x",
    "webhookHeaders": '{"Content-type":"application/json","X-Team":"web"}',
    "webhookProxy": "http://proxy:3128",
    "webhookTemplate": '{"text":"$ {{ .InstanceID }} {{.NodeName}} {{ .InstanceType }}"}',
}


def test_a_webhook_becomes_a_channel_with_our_fields_in_its_template() -> None:
    assert spec(**QUEUED, **WEBHOOK)["notify"] == [
        {
            "name": "webhook",
            "url": "https://hooks.example.com/x",
            "template": '{"text":"$$ ${instance} ${node} "}',
            "headers": [{"name": "X-Team", "value": "web"}],
            "proxy": "http://proxy:3128",
            "causes": ["spot", "scheduled", "hook", "stopped", "ended"],
        }
    ]
    assert any("InstanceType" in note for note in migrated(**WEBHOOK).notes)


def test_a_webhook_without_a_plain_template_says_what_the_handler_says_to_slack() -> None:
    assert spec(webhookURL="https://x") == {
        **spec(),
        "notify": [{"name": "webhook", "url": "https://x", "format": "Slack", "causes": ["spot", "scheduled", "hook"]}],
    }
    templated = migrated(webhookURL="https://x", webhookTemplate="{{ if .NodeName }}x{{ end }}")
    assert "does more than name fields" in " ".join(templated.notes)
    assert "webhook" not in spec(webhookProxy="http://proxy:3128")


def test_a_webhook_whose_address_is_secret_keeps_it_in_a_secret() -> None:
    found = migrated(webhookURLSecretName="nth-hook")
    assert found.policy["spec"]["notify"][0]["urlSecretKey"] == "webhookurl"
    assert "copy the key webhookurl of Secret nth-hook to Secret perdure-notifications" in " ".join(found.notes)


@pytest.mark.parametrize(("values", "named"), [({}, ["webhookURL"]), (WEBHOOK, ["webhookHeaders", "webhookURL"])])
def test_an_address_and_headers_that_every_reader_of_policies_would_see_are_named(
    values: dict[str, str], named: list[str]
) -> None:
    notes = migrated(**{"webhookURL": "https://x"} | values).notes
    assert sorted(note.partition(":")[0] for note in notes if "who may read policies" in note) == named
    secret = migrated(webhookURL="https://x", webhookURLSecretName="nth-hook").notes
    assert not any("who may read policies" in note for note in secret)


def test_headers_that_are_no_object_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="webhookHeaders"):
        spec(webhookURL="https://x", webhookHeaders="[1]")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cordonOnly: perhaps", "cordonOnly: 'perhaps' is neither true nor false"),
        ("nodeTerminationGracePeriod: 2m", "nodeTerminationGracePeriod: '2m' is no whole number of seconds"),
        ("queueURL: 7", "queueURL: 7 is no text"),
        ("taintEffect: Never", "'Never' is not a valid TaintEffect"),
        ("[1]", "holds no values of a chart"),
        ("a: [", "cannot be read"),
    ],
)
def test_values_that_nobody_can_mean_are_refused_by_name(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(text)
    refused = CliRunner().invoke(build(), ["install", "migrate", "nth", str(file)])
    assert isinstance(refused.exception, CommandError)
    assert said in str(refused.exception)


def test_the_command_prints_a_policy_after_its_notes(tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text("enableSqsTerminationDraining: true\ndryRun: true\n")
    told = CliRunner().invoke(build(), ["install", "migrate", "nth", str(file), "--name", "fleet"])
    assert (told.exit_code, told.output.startswith("# dryRun: ")) == (0, True)
    assert yaml.safe_load(told.output)["metadata"]["name"] == "fleet"
