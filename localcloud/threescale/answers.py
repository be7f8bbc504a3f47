"""Answers as JSON, or XML derived from the JSON.

An object is nested under its name (`{"service": {...}}`), a list under the plural. XML omits `links`, and has page
numbers as attributes of the list.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from xml.etree import ElementTree

from pydantic import JsonValue

from localcloud.threescale.contract import JsonObject


class Format(StrEnum):
    JSON = "json"
    XML = "xml"


CONTENT_TYPES = {Format.JSON: "application/json; charset=utf-8", Format.XML: "application/xml; charset=utf-8"}

# The names that differ in XML: JSON name to XML name.
_XML_NAMES = {"application_plan": "plan", "service_plan": "plan", "account_plan": "plan"}
_PLAN_ATTRIBUTES = ("custom", "default")


@dataclass
class Answer:
    status: int = 200
    body: JsonValue = None
    text: str | None = None
    content_type: str = "text/plain; charset=utf-8"
    location: str | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def rendered(self, wanted: Format) -> tuple[str, bytes]:
        if self.text is not None:
            return self.content_type, self.text.encode()
        if self.body is None:
            return CONTENT_TYPES[wanted], b""
        if wanted is Format.JSON:
            return CONTENT_TYPES[wanted], json.dumps(self.body, ensure_ascii=False, separators=(",", ":")).encode()
        return CONTENT_TYPES[wanted], as_xml(self.body)


@dataclass(frozen=True)
class Page:
    number: int
    size: int
    total: int = 0

    @property
    def count(self) -> int:
        return max(1, -(-self.total // self.size))

    @property
    def metadata(self) -> JsonObject:
        return {
            "per_page": self.size,
            "total_entries": self.total,
            "total_pages": self.count,
            "current_page": self.number,
        }


def item(name: str, fields: JsonObject, *, created: bool = False) -> Answer:
    links = fields.get("links")
    first = links[0] if isinstance(links, list) and links else None
    location = str(first["href"]) if created and isinstance(first, dict) else None
    return Answer(201 if created else 200, {name: fields}, location=location)


def collection(plural: str, name: str, each: Sequence[JsonObject], page: Page | None = None) -> Answer:
    body: JsonObject = {plural: [{name: fields} for fields in each]}
    if page is not None and page.count > 1:
        body["metadata"] = page.metadata
    return Answer(body=body)


def done() -> Answer:
    return Answer()


def entity_tag(payload: bytes) -> str:
    return f'W/"{hashlib.md5(payload, usedforsecurity=False).hexdigest()}"'


def as_xml(body: JsonValue) -> bytes:
    if not isinstance(body, dict) or set(body) == {"status"}:
        return b""
    if set(body) == {"errors"}:
        return _bytes(_errors(body["errors"]))
    root: ElementTree.Element | None = None
    for name, value in body.items():
        if name != "metadata":
            root = _element(name, value)
    if root is None:
        return b""
    metadata = body.get("metadata")
    if isinstance(metadata, dict):
        root.attrib.update({name: str(value) for name, value in metadata.items()})
    return _bytes(root)


def _element(name: str, value: JsonValue) -> ElementTree.Element:
    element = ElementTree.Element(_XML_NAMES.get(name, name))
    if isinstance(value, dict):
        if element.tag == "plan":
            element.attrib.update({each: _text(value.get(each)) for each in _PLAN_ATTRIBUTES})
        for key, each in value.items():
            if key == "links" or (element.tag == "plan" and key in _PLAN_ATTRIBUTES):
                continue
            element.append(_element(key, each))
        if name in _XML_NAMES:
            element.append(_element("type", name))
    elif isinstance(value, list):
        for each in value:
            element.extend(_wrapped(name, each))
    elif value is not None:
        element.text = _text(value)
    return element


def _wrapped(plural: str, value: JsonValue) -> list[ElementTree.Element]:
    if isinstance(value, dict) and len(value) == 1:
        ((name, inner),) = value.items()
        if isinstance(inner, dict):
            return [_element(name, inner)]
    return [_element(plural.removesuffix("s") or plural, value)]


def _errors(errors: JsonValue) -> ElementTree.Element:
    root = ElementTree.Element("errors")
    for field_name, messages in errors.items() if isinstance(errors, dict) else ():
        for message in messages if isinstance(messages, list) else [messages]:
            shown = str(message) if field_name == "base" else f"{field_name.replace('_', ' ').capitalize()} {message}"
            ElementTree.SubElement(root, "error").text = shown
    return root


def _text(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _bytes(root: ElementTree.Element) -> bytes:
    return b'<?xml version="1.0" encoding="UTF-8"?>' + ElementTree.tostring(root, encoding="unicode").encode()
