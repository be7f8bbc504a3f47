"""The body of a notification: that AWS reclaims an instance, why, and what is done about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from string import Template

FIELDS = (
    "text",
    "event",
    "cause",
    "reaction",
    "policy",
    "instance",
    "account",
    "region",
    "namespace",
    "cluster",
    "machine",
    "node",
    "received",
    "deadline",
)
# What the API server accepts as a template: fields in braces, and $$ for a dollar.
TEMPLATE = rf"^([^$]|\$\$|\$\{{({'|'.join(FIELDS)})\}})*$"

_CAUSES = {
    "spot": "Spot reclaims it",
    "scheduled": "EC2 has scheduled an event",
    "hook": "Auto Scaling terminates it",
    "stopped": "it is being stopped",
    "ended": "it is being terminated",
}


def sentence(fields: Mapping[str, str]) -> str:
    node = f", Node {fields['node']}" if fields["node"] else ""
    cluster = f" of cluster {fields['namespace']}/{fields['cluster']}" if fields["cluster"] else ""
    deadline = f", until {fields['deadline']}" if fields["deadline"] else ""
    where = f"{fields['instance']} ({fields['account']}, {fields['region']}{node}){cluster}"
    return f"{where}: {_CAUSES[fields['cause']]}{deadline}. Reaction: {fields['reaction']}."


def json_body(fields: Mapping[str, str]) -> str:
    return json.dumps({name: fields[name] for name in FIELDS})


def slack_body(fields: Mapping[str, str]) -> str:
    return json.dumps({"text": fields["text"]})


def teams_body(fields: Mapping[str, str]) -> str:
    """The body for a workflow of Microsoft Teams that posts an Adaptive Card."""
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [{"type": "TextBlock", "text": fields["text"], "wrap": True}],
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return json.dumps({"type": "message", "attachments": [attachment]})


def templated_body(template: str, fields: Mapping[str, str]) -> str:
    """The template with its fields replaced by their values, escaped as inside a JSON string."""
    return Template(template).safe_substitute({name: json.dumps(value)[1:-1] for name, value in fields.items()})
