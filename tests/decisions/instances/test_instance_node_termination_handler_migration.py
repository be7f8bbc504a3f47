"""`perdure install migrate nth`: the values of the AWS Node Termination Handler's chart as an InterruptionPolicy."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from openapi_schema_validator import validate
from typer.testing import CliRunner

from domain.custom_resources import crd_of
from domain.instances.arns import dns_suffix_of
from domain.instances.node_termination_handler_migration import (
    DIFFERENT,
    KNOWN,
    MAPPED,
    OF_ITS_OWN,
    Migrated,
    policy_of_nth,
)
from domain.instances.resources import InterruptionPolicy
from domain.instances.served_queues import place_of
from domain.operator_domain import DEFAULT
from starters.cli.main import build
from starters.cli.output import CommandError

SCHEMA: Any = crd_of(InterruptionPolicy, DEFAULT)["spec"]
QUEUED = {"enableSqsTerminationDraining": True}
PAGE = Path(__file__).parents[3] / "docs" / "migration-node-handlers.md"
SAMPLES = Path(__file__).parents[2] / "samples" / "node_termination_handler"
PASSWORD = "T0KEN"  # in all that must not be printed


def migrated(**values: Any) -> Migrated:
    found = policy_of_nth(values, "nth")
    validate(found.policy, SCHEMA["versions"][0]["schema"]["openAPIV3Schema"])
    return found


def spec(**values: Any) -> Any:
    return migrated(**values).policy["spec"]


def at(found: Any, path: Iterable[str]) -> object:
    for step in path:
        found = found.get(step) if found is not None else None
    return found


def notes(about: str, **values: Any) -> list[str]:
    return [note for note in migrated(**values).notes if note.startswith(f"{about}: ")]


def further(**values: Any) -> set[str]:
    """What is said beyond that of the mode's own."""
    queued = {name: value for name, value in values.items() if name in QUEUED}
    return set(migrated(**values).notes) - set(migrated(**queued).notes)


def run(*arguments: str, typed: str = "") -> Result:
    return CliRunner().invoke(build(), ["install", "migrate", "nth", *arguments], input=typed)


# The policy.


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
    }


def test_the_defaults_of_the_imds_mode_drain_for_spot_and_scheduled_events() -> None:
    assert spec() == {
        "reactions": {"spot": "drain", "ending": "drain", "reboot": "drain", "maintenance": "drain"},
        "drain": {"nodeGracePeriodSeconds": 120, "doNotDisrupt": "Ignore"},
        "maintenanceLeadSeconds": 120,
    }


@pytest.mark.parametrize(
    ("values", "path", "expected"),
    [
        ({"cordonOnly": True}, ("reactions", "stopped"), "cordon"),
        ({"cordonOnly": "true"}, ("reactions", "spot"), "cordon"),
        ({"checkTagBeforeDraining": False}, ("selector",), None),
        ({"checkASGTagBeforeDraining": False}, ("selector",), None),
        ({"managedTag": "acme/managed"}, ("selector", "tags"), {"acme/managed": "*"}),
        ({"managedAsgTag": "acme/old"}, ("selector", "tags"), {"acme/old": "*"}),
        ({"nodeSelector": {"a": "b"}}, ("selector", "labels"), None),
        ({"taintNode": True}, ("taint",), {"nodeTerminationHandlerNames": True, "effect": "NoSchedule"}),
        ({"taintNode": True, "taintEffect": "NoExecute"}, ("taint", "effect"), "NoExecute"),
        ({"podTerminationGracePeriod": 30}, ("drain", "podGracePeriodSeconds"), 30),
        ({"podTerminationGracePeriod": "-1"}, ("drain", "podGracePeriodSeconds"), None),
        ({"podTerminationGracePeriod": -1, "gracePeriod": 40}, ("drain", "podGracePeriodSeconds"), None),
        ({"gracePeriod": 40}, ("drain", "podGracePeriodSeconds"), 40),
        ({"nodeTerminationGracePeriod": "300"}, ("drain", "nodeGracePeriodSeconds"), 300),
        ({"nodeTerminationGracePeriod": 0}, ("drain", "nodeGracePeriodSeconds"), None),
        ({"nodeTerminationGracePeriod": -1}, ("drain", "nodeGracePeriodSeconds"), 120),
        ({"nodeTerminationGracePeriod": 300}, ("maintenanceLeadSeconds",), None),
        ({"heartbeatInterval": 60}, ("heartbeatSeconds",), 60),
        ({"heartbeatInterval": -1}, ("heartbeatSeconds",), None),
        ({"heartbeatUntil": 3600}, ("hookLimitSeconds",), 3600),
        ({"heartbeatUntil": 1.728e05}, ("hookLimitSeconds",), 172800),
        ({"heartbeatUntil": -1}, ("hookLimitSeconds",), None),
    ],
)
def test_each_value_has_its_field_in_queue_mode(
    values: dict[str, Any], path: tuple[str, ...], expected: object
) -> None:
    assert at(spec(**QUEUED | values), path) == expected


@pytest.mark.parametrize(
    ("values", "path", "expected"),
    [
        ({"enableSpotInterruptionDraining": False}, ("reactions", "spot"), "label"),
        ({"enableSpotInterruptionDraining": ""}, ("reactions", "spot"), "drain"),
        ({"enableScheduledEventDraining": "false"}, ("reactions", "reboot"), "label"),
        ({"enableASGLifecycleDraining": True}, ("reactions", "terminatingHook"), "drain"),
        ({"enableASGLifecycleDraining": True, "cordonOnly": True}, ("reactions", "terminatingHook"), "cordon"),
        ({"nodeTerminationGracePeriod": 300}, ("maintenanceLeadSeconds",), 300),
        ({"nodeSelector": {"a": "b"}, "linuxNodeSelector": {"c": "d"}}, ("selector", "labels"), {"a": "b", "c": "d"}),
        ({"daemonsetNodeSelector": {"a": "b"}}, ("selector", "labels"), {"a": "b"}),
    ],
)
def test_each_value_has_its_field_in_imds_mode(values: dict[str, Any], path: tuple[str, ...], expected: object) -> None:
    assert at(spec(**values), path) == expected


@pytest.mark.parametrize(
    "values",
    [
        {"enableSpotInterruptionDraining": False},
        {"enableScheduledEventDraining": "false"},
        {"enableASGLifecycleDraining": True},
        {"enableRebalanceDraining": True},
        {"enableRebalanceMonitoring": True},
    ],
)
def test_flags_of_the_imds_mode_change_nothing_in_queue_mode(values: dict[str, Any]) -> None:
    (name,) = values
    assert spec(**QUEUED | values) == spec(**QUEUED)
    assert further(**QUEUED, **values) == {f"{name}: it has no effect in the handler's queue mode, and is left out"}


@pytest.mark.parametrize(
    "values",
    [
        {"checkTagBeforeDraining": False},
        {"checkASGTagBeforeDraining": "false"},
        {"managedTag": "acme/managed"},
        {"managedAsgTag": "acme/managed"},
        {"heartbeatInterval": 60},
        {"heartbeatUntil": 3600},
        {"completeLifecycleActionDelaySeconds": 60},
        {"assumeAsgTagPropagation": False},
    ],
)
def test_values_of_the_queue_mode_change_nothing_in_imds_mode(values: dict[str, Any]) -> None:
    (name,) = values
    assert spec(**values) == spec()
    assert further(**values) == {f"{name}: it has no effect in the handler's IMDS mode, and is left out"}


# What is different is said.


def test_what_the_queue_mode_does_otherwise_is_said() -> None:
    scheduled, rebalance, launches = notes("enableSqsTerminationDraining", **QUEUED)
    assert "drains for a scheduled event at once" in scheduled
    assert "24 hours before the date" in scheduled
    assert "recommendations to rebalance" in rebalance
    assert "launchingHook: true" in launches


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"excludeFromLoadBalancers": True}, "excludeFromLoadBalancers: Perdure does not label Nodes"),
        ({"deleteLocalData": False}, "deleteLocalData: the handler does not drain a Node whose Pods have emptyDir"),
        (
            {"ignoreDaemonSets": "false"},
            "ignoreDaemonSets: the handler does not drain a Node that has Pods of DaemonSets",
        ),
        ({"completeLifecycleActionDelaySeconds": 60}, "completeLifecycleActionDelaySeconds: Perdure completes a hook"),
        ({"kubernetesEventsExtraAnnotations": "a=b"}, "kubernetesEventsExtraAnnotations: Perdure adds no further"),
        ({"nodeTerminationGracePeriod": 0}, "nodeTerminationGracePeriod: 0 sets no limit"),
        ({"nodeTerminationGracePeriod": -5}, "nodeTerminationGracePeriod: a negative number counts as absent"),
        ({"dryRun": True}, "dryRun: set PERDURE_MODE=observe"),
        ({"brandNew": 1}, "brandNew: Perdure does not know this value"),
        ({"queueURL": "nodes"}, "queueURL: nodes is not the URL of a queue"),
        (
            {"webhookURL": "https://x", "webhookTemplateConfigMapName": "t", "webhookTemplateConfigMapKey": "k.tmpl"},
            "webhookTemplateConfigMapName: the policy lacks the template k.tmpl of the ConfigMap t, because",
        ),
    ],
)
def test_what_has_no_counterpart_is_said(values: dict[str, Any], text: str) -> None:
    (note,) = [note for note in further(**QUEUED, **values) if note.startswith(text)]
    assert note


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"enableRebalanceDraining": True}, "enableRebalanceDraining: Perdure only sets a label"),
        ({"enableASGLifecycleDraining": True}, "enableASGLifecycleDraining: Perdure also completes"),
        ({"nodeSelector": {"a": "b"}}, "nodeSelector: selector.labels is compared"),
        ({"affinity": {"nodeAffinity": {}}}, "affinity: the handler runs only on these Nodes"),
        ({"windowsNodeSelector": {"a": "b"}}, "windowsNodeSelector: Nodes with Windows need a policy of their own"),
    ],
)
def test_what_has_no_counterpart_in_imds_mode_is_said(values: dict[str, Any], text: str) -> None:
    (note,) = further(**values)
    assert note.startswith(text)


@pytest.mark.parametrize(
    "values",
    [
        {"enableRebalanceDraining": False, "enableSpotInterruptionDraining": True, "podTerminationGracePeriod": -1},
        {"workers": 10, "image": {"tag": "v1"}, "affinity": {"nodeAffinity": {}}, "global": {}},
        {"deleteLocalData": True, "ignoreDaemonSets": "true", "completeLifecycleActionDelaySeconds": -1},
        {"webhookProxy": "http://proxy:3128", "webhookTemplate": "{{ .Pods }}"},
    ],
)
def test_nothing_is_said_of_what_changes_nothing(values: dict[str, Any]) -> None:
    assert further(**QUEUED, **values) == set()


@pytest.mark.parametrize("name", sorted(DIFFERENT))
def test_every_value_that_is_taken_otherwise_has_its_note(name: str) -> None:
    harmless, message = DIFFERENT[name]
    other: object = not harmless if isinstance(harmless, bool) else 60 if isinstance(harmless, int) else "x"
    mode = {} if name.endswith(("ffinity", "NodeSelector")) or "Rebalance" in name else QUEUED
    assert notes(name, **mode, **{name: other}) == [f"{name}: {message}"]


def test_the_page_names_every_value_where_it_belongs() -> None:
    sections = dict(re.findall(r"^### (Values that .*)\n((?:.*\n(?!#))*)", PAGE.read_text(), re.MULTILINE))
    cells = {
        title: [row.split("|")[1] for row in text.splitlines() if row.startswith("| `")]
        for title, text in sections.items()
    }
    named = {title: {name for cell in rows for name in re.findall(r"`(\w+)", cell)} for title, rows in cells.items()}
    assert named == {
        "Values that go into the policy": MAPPED,
        "Values that have another effect": set(DIFFERENT),
        "Values that only the handler needs": OF_ITS_OWN,
    }
    assert len(MAPPED) + len(DIFFERENT) + len(OF_ITS_OWN) == len(KNOWN)


# Queues.


@pytest.mark.parametrize(
    "region",
    [
        "eu-central-1",
        "us-gov-west-1",
        "cn-north-1",
        "eusc-de-east-1",
        "us-iso-east-1",
        "us-isob-east-1",
        "eu-isoe-west-1",
        "us-isof-south-1",
    ],
)
@pytest.mark.parametrize("service", ["sqs", "sqs-fips"])
def test_a_queue_of_any_partition_becomes_a_setting(service: str, region: str) -> None:
    url = f"https://{service}.{region}.{dns_suffix_of(region)}/123456789012/nodes"
    (note,) = notes("queueURL", **QUEUED, queueURL=url)
    setting = re.search(r"PERDURE_INSTANCES_QUEUES=([^ ]+)\. ", note)
    assert setting
    place = place_of(setting[1])
    assert (place.account, place.region) == ("123456789012", region)
    assert f"123456789012/{region}/nodes" in note


@pytest.mark.parametrize(
    "url",
    [
        "https://sqs.eu-central-1.amazonaws.com.cn/123456789012/nodes",
        "https://sqs.eu-central-1.amazonaws.example/123456789012/nodes",
        "https://sqs.cn-north-1.amazonaws.com/123456789012/nodes",
        "https://sqs.eusc-de-east-1.amazonaws.com/123456789012/nodes",
    ],
)
def test_a_host_that_is_not_awss_in_that_region_is_no_queue(url: str) -> None:
    (note,) = notes("queueURL", **QUEUED, queueURL=url)
    assert "is not the URL of a queue in AWS" in note


# Webhooks.

WEBHOOK = {
    "webhookURL": f"https://hooks.example.com/{PASSWORD}",
    "webhookHeaders": '{"Content-type":"application/json","X-Team":"web"}',
    "webhookProxy": "http://proxy:3128",
    "webhookTemplate": '{"text":"$ {{ .InstanceID }} {{.NodeName}} {{ .InstanceType }}"}',
}


def test_a_webhook_becomes_a_channel_with_our_fields_in_its_template() -> None:
    assert spec(**QUEUED, **WEBHOOK)["notify"] == [
        {
            "name": "webhook",
            "urlSecretKey": "webhookurl",
            "template": '{"text":"$$ ${instance} ${node} "}',
            "headers": [{"name": "X-Team", "value": "web"}],
            "proxy": "http://proxy:3128",
            "causes": ["spot", "scheduled", "hook", "stopped", "ended"],
        }
    ]
    assert (
        "webhookTemplate: Perdure has no InstanceType; the parts that name them are left out"
        in migrated(**WEBHOOK).notes
    )


@pytest.mark.parametrize(
    ("values", "causes"),
    [
        ({}, ["spot", "scheduled"]),
        ({"enableScheduledEventDraining": False}, ["spot"]),
        ({"enableASGLifecycleDraining": True}, ["spot", "scheduled", "hook"]),
    ],
)
def test_a_webhook_is_told_what_the_handler_acts_upon(values: dict[str, Any], causes: list[str]) -> None:
    (channel,) = spec(webhookURL="https://x", **values)["notify"]
    assert channel == {"name": "webhook", "urlSecretKey": "webhookurl", "format": "Slack", "causes": causes}


def test_a_template_that_does_more_than_name_fields_is_said_with_what_it_does() -> None:
    values = {"webhookURL": "https://x", "webhookTemplate": "{{ .NodeName }}{{ if .NodeName }}x{{ end }}"}
    assert spec(**values)["notify"][0]["format"] == "Slack"
    (note,) = notes("webhookTemplate", **values)
    assert note.startswith("webhookTemplate: {{ if .NodeName }} does more than name a field")


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ('{"kind":"{{ .Kind }}"}', ["{{ .Kind }} becomes ${cause}; the words differ: SPOT_ITN is spot"]),
        ('{"start":"{{ .StartTime }}"}', ["{{ .StartTime }} becomes ${deadline}; it is written as"]),
        ('{"pods":"{{ .Pods }} {{ .State }}"}', ["Perdure has no Pods, State"]),
        ('{"text":"{{ .EventID }} {{ .Description }} {{ .AccountId }} {{ .Region }}"}', []),
        ('{"state":{{ .State }}}', ["Perdure has no State", "with Perdure's fields the body is not JSON"]),
        ("{{ .NodeName }} goes", []),
        ('{"routing_key" : "R0", "summary": "key: {{ .NodeName }}"}', ["all who may read policies see routing_key"]),
    ],
)
def test_fields_of_a_template_that_differ_are_named(template: str, message: list[str]) -> None:
    found = notes("webhookTemplate", webhookURL="https://x", webhookTemplate=template)
    assert [note.startswith(f"webhookTemplate: {each}") for note, each in zip(found, message, strict=True)] == [
        True
    ] * len(message)


def test_a_webhook_whose_address_is_secret_keeps_it_in_a_secret() -> None:
    found = migrated(webhookURLSecretName="nth-hook")
    assert found.policy["spec"]["notify"][0]["urlSecretKey"] == "webhookurl"
    (note,) = notes("webhookURLSecretName", webhookURLSecretName="nth-hook")
    assert "copy the key webhookurl of the Secret nth-hook into the Secret perdure-notifications" in note


def test_addresses_passwords_and_tokens_become_keys_of_the_secret() -> None:
    found = migrated(
        webhookURL=f"https://hooks.example.com/{PASSWORD}",
        webhookProxy=f"http://perdure:{PASSWORD}@proxy:3128",
        webhookHeaders={"Authorization": f"Bearer {PASSWORD}", "X_Api-Key": PASSWORD, "X-Team": "web"},
    )
    (channel,) = found.policy["spec"]["notify"]
    assert (channel["urlSecretKey"], channel["proxySecretKey"], "proxy" in channel) == (
        "webhookurl",
        "webhookproxy",
        False,
    )
    assert channel["headers"] == [
        {"name": "Authorization", "secretKey": "webhookheader-authorization"},
        {"name": "X_Api-Key", "secretKey": "webhookheader-x_api-key"},
        {"name": "X-Team", "value": "web"},
    ]
    message = "\n".join(found.notes)
    for key in ("webhookurl", "webhookproxy", "webhookheader-authorization", "webhookheader-x_api-key"):
        assert f"the Secret perdure-notifications in Perdure's namespace with the key {key}" in message
    assert "all who may read policies see X-Team" in message
    assert PASSWORD not in f"{found.policy} {message}"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"webhookURL": f"ftp://x:{PASSWORD}@host"}, "webhookURL: it begins with ftp://"),
        ({"webhookURL": f"x:{PASSWORD}@host"}, "webhookURL: it has no scheme"),
        ({"webhookURL": f"https://host/{PASSWORD} x"}, "webhookURL: .*without spaces"),
        ({"webhookURL": "https://host/" + PASSWORD * 500}, "webhookURL: .*at most 2000"),
        ({"webhookURL": {"x": PASSWORD}}, "webhookURL: it is not a string"),
        ({"webhookProxy": f"socks5://x:{PASSWORD}@host"}, "webhookProxy: it begins with socks5://"),
        ({"webhookHeaders": f'["{PASSWORD}"]'}, "webhookHeaders: it is not a JSON object"),
        ({"webhookHeaders": {"X Y": PASSWORD}}, "webhookHeaders: 'X Y' is not the name of a header"),
        ({"webhookHeaders": {"X": f"{PASSWORD}\n"}}, "webhookHeaders: the value of X cannot be sent"),
        ({"webhookHeaders": {f"X{i}": PASSWORD for i in range(17)}}, "webhookHeaders: it has 17 headers"),
        ({"webhookTemplate": "x" * 4097}, "webhookTemplate: it has 4097 characters; allowed are 4096"),
    ],
)
def test_webhooks_that_the_api_server_would_refuse_are_refused_without_their_secrets(
    values: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError, match=text) as refused:
        migrated(**{"webhookURL": "https://x"} | values)
    assert PASSWORD not in str(refused.value)


# The command.


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cordonOnly: perhaps", "cordonOnly: 'perhaps' is neither true nor false"),
        ("deleteLocalData: perhaps", "deleteLocalData: 'perhaps' is neither true nor false"),
        (
            "nodeTerminationGracePeriod: 2m",
            "nodeTerminationGracePeriod: '2m' is not a whole number of seconds; allowed",
        ),
        (
            "nodeTerminationGracePeriod: 1.5",
            "nodeTerminationGracePeriod: 1.5 is not a whole number of seconds; allowed",
        ),
        ("nodeTerminationGracePeriod: 2592001", "2592001 is out of range; allowed are 0 to 2592000 seconds"),
        ("podTerminationGracePeriod: 2592001", "podTerminationGracePeriod: 2592001 is out of range; allowed are 0 to"),
        ("gracePeriod: 2592001", "gracePeriod: 2592001 is out of range; allowed are 0 to 2592000 seconds"),
        ("heartbeatInterval: 29", "heartbeatInterval: 29 is out of range; allowed are 30 to 3600 seconds"),
        ("heartbeatInterval: 3601", "heartbeatInterval: 3601 is out of range; allowed are 30 to 3600 seconds"),
        ("heartbeatUntil: 59", "heartbeatUntil: 59 is out of range; allowed are 60 to 172800 seconds"),
        ("heartbeatUntil: 172801", "heartbeatUntil: 172801 is out of range; allowed are 60 to 172800 seconds"),
        ("queueURL: 7", "queueURL: 7 is not a string"),
        ("taintEffect: Never", "taintEffect: 'Never' is not one of NoSchedule, PreferNoSchedule, NoExecute"),
        ("[1]", "holds no values of a chart"),
        ("a: [", "cannot be read"),
    ],
)
def test_values_without_a_meaning_are_refused_by_name(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "values.yaml"
    mode = "" if text in ("[1]", "a: [") else "enableSqsTerminationDraining: true\n"
    file.write_text(mode + text)
    refused = run(str(file))
    assert isinstance(refused.exception, CommandError)
    assert message in str(refused.exception)


@pytest.mark.parametrize("text", ["nodeSelector: {a: 1}", "nodeSelector: [a]"])
def test_a_selector_that_is_no_object_of_strings_is_refused(text: str) -> None:
    refused = run("-", typed=text)
    assert "nodeSelector: " in str(refused.exception)


def test_the_command_prints_a_policy_after_its_notes(tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text("enableSqsTerminationDraining: true\ndryRun: true\n")
    printed = run(str(file), "--name", "fleet")
    assert printed.exit_code == 0
    assert "# dryRun: set PERDURE_MODE=observe" in printed.output
    assert max(map(len, printed.output.splitlines())) <= 120
    assert yaml.safe_load(printed.output)["metadata"]["name"] == "fleet"


def test_the_command_reads_standard_input_and_the_values_of_a_dependency() -> None:
    below = yaml.safe_dump({"aws-node-termination-handler": QUEUED | {"cordonOnly": True}, "ingress-nginx": {"a": 1}})
    printed = run("-", typed=below)
    assert yaml.safe_load(printed.output)["spec"]["reactions"]["spot"] == "cordon"
    assert "ingress-nginx" not in printed.output


def test_a_name_that_kubernetes_would_refuse_is_refused() -> None:
    refused = run("-", "--name", "Fleet_1", typed="{}")
    assert (refused.exit_code, "not a valid name" in refused.output) == (2, True)


@pytest.mark.parametrize("sample", sorted(SAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_values_of_real_installations_print_policies_without_their_secrets(sample: Path) -> None:
    printed = run(str(sample))
    policy = yaml.safe_load(printed.output)
    validate(policy, SCHEMA["versions"][0]["schema"]["openAPIV3Schema"])
    assert PASSWORD not in printed.output
    assert "does not know this value" not in printed.output
    assert set(policy["spec"]["reactions"].values()) <= {"drain", "cordon", "label"}
