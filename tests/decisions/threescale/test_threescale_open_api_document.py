"""OpenAPI documents as strangers write them: read by the rules, refused when long, deep, blown up or ambiguous."""

from __future__ import annotations

import contextlib
import json
import re

import pytest

from domain.schema import JsonObject
from domain.threescale import open_api_document
from domain.threescale.open_api_document import DEEPEST, MOST_BYTES, Unreadable, read_api

HEAD = 'openapi: "3.0.2"\ninfo: {title: Pets, version: "1"}\n'
GET = "{responses: {200: {description: ok}}}"


def test_yaml_and_json_say_the_same() -> None:
    text = f"{HEAD}paths: {{/a: {{get: {GET}}}}}"
    whole = {
        "openapi": "3.0.2",
        "info": {"title": "Pets", "version": "1"},
        "paths": {"/a": {"get": {"responses": {"200": {"description": "ok"}}}}},
    }

    assert read_api(text) == read_api(json.dumps(whole)) == read_api(json.dumps(whole, indent=4))


def test_a_document_in_yaml_may_begin_with_a_brace() -> None:
    assert read_api("{openapi: '3.0.2', info: {title: Pets, version: '1'}, paths: {}}").info.title == "Pets"


def test_dates_are_texts_and_anchors_are_followed() -> None:
    text = f"""{HEAD}
x-common: &common {GET}
x-merged: {{<<: {{a: 1}}, a: 2}}
paths:
  /b: {{get: *common, post: {{description: 2020-01-01, responses: {{default: {{}}}}}}}}
"""
    calls = read_api(text).calls

    assert [(each.verb, each.path, each.operation.description) for each in calls] == [
        ("GET", "/b", ""),
        ("POST", "/b", "2020-01-01"),
    ]


def test_a_schema_may_contain_itself_and_refer_to_another() -> None:
    tree = "Tree: {type: object, properties: {left: {$ref: '#/components/schemas/Tree'}}}"
    alias = "Alias: {$ref: '#/components/schemas/Tree'}"
    assert read_api(f"{HEAD}paths: {{}}\ncomponents: {{schemas: {{{tree}, {alias}}}}}").calls == ()


def test_references_lead_to_places_of_the_document() -> None:
    text = f"""{HEAD}
paths:
  /a/b: {{get: {GET}}}
  /c: {{$ref: "#/paths/~1a~1b"}}
"""
    assert [each.path for each in read_api(text).calls] == ["/a/b", "/c"]


BLOWN_UP = "a0: &a0 [1, 1]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 20))
REFUSED = {
    "long": (" " * (MOST_BYTES + 1), f"longer than {MOST_BYTES} bytes"),
    "deep in YAML": ("[" * (DEEPEST + 1), f"deeper than {DEEPEST} levels"),
    "deep in JSON": (f'{{"a": {"[" * DEEPEST}{"]" * DEEPEST}}}', f"deeper than {DEEPEST} levels"),
    "very deep in JSON": ('{"a":' * 100_000, "neither JSON nor YAML"),
    "blown up": (BLOWN_UP, "more than"),
    "a circle of aliases": ("a: &a [*a]", "recursive"),
    "a name twice in YAML": (f"{HEAD}paths: {{}}\npaths: {{}}", "'paths' occurs twice"),
    "a name twice in JSON": ('{"a": 1, "a": 2}', "'a' occurs twice"),
    "an object of Python": ("!!python/object/apply:os.getcwd []", "could not determine a constructor"),
    "no object": ("- 1", "a list or a single value, where an object is needed"),
    "a page": ("<html><body>Log in</body></html>", "an HTML or XML page instead of an OpenAPI document"),
    "nothing": ("", "empty"),
    "Swagger 2": ('swagger: "2.0"\ninfo: {title: a, version: "1"}\npaths: {}', "openapi: Field required"),
    "a number for a text": (
        'openapi: "3.0.0"\ninfo: {title: a, version: 1.0}\npaths: {}',
        "info.version: Input should",
    ),
    "no title": ('openapi: "3.0.0"\ninfo: {title: "", version: "1"}\npaths: {}', "info.title: String should have"),
    "a path without a slash": (f"{HEAD}paths: {{a: {{}}}}", "paths: 'a' does not begin with a slash"),
    "no answers": (f"{HEAD}paths: {{/a: {{get: {{}}}}}}", "GET /a: responses: Field required"),
    "another document": (f"{HEAD}paths: {{/a: {{$ref: 'http://x/#/a'}}}}", "must stay within the document"),
    "nothing there": (f"{HEAD}paths: {{/a: {{$ref: '#/x'}}}}", "#/x: does not exist"),
    "a schema that is itself": (
        f"{HEAD}paths: {{}}\ncomponents: {{schemas: {{A: {{$ref: '#/components/schemas/A'}}}}}}",
        "components.schemas.A: circular references",
    ),
    "schemas that are each other": (
        f"{HEAD}paths: {{}}\ncomponents: {{schemas: {{A: {{$ref: '#/components/schemas/B'}}, "
        "B: {$ref: '#/components/schemas/A'}}}",
        "circular references",
    ),
    "a circle": (f"{HEAD}paths: {{/a: {{$ref: '#/paths/~1a'}}}}", "circular references"),
    "a variable of nothing": (f"{HEAD}servers: [{{url: 'http://{{h}}'}}]\npaths: {{}}", "missing h"),
    "no port": (f"{HEAD}servers: [{{url: 'http://a:b'}}]\npaths: {{}}", "servers[0].url: Port could not be cast"),
    "an unknown scheme": (f"{HEAD}security: [{{it: []}}]\npaths: {{}}", "'it' is not among the security schemes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_unusable_document_is_refused_with_the_reason(name: str) -> None:
    text, reason = REFUSED[name]
    with pytest.raises(Unreadable, match=re.escape(reason)):
        read_api(text)


def test_a_text_is_read_once_whether_it_can_be_used_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed, read = open_api_document.parsed, list[str]()

    def watched(text: str) -> JsonObject:
        read.append(text)
        return parsed(text)

    monkeypatch.setattr(open_api_document, "parsed", watched)
    texts = [f"{HEAD}paths: {{/once: {{get: {GET}}}}}", f"{HEAD}paths: once"]
    for text in texts * 2:
        with contextlib.suppress(Unreadable):
            read_api(text)
    assert read == texts


@pytest.mark.parametrize("place", ["info", "description", "operationId", "servers", "security", "path", "get", "url"])
def test_an_empty_field_is_absent(place: str) -> None:
    fields = {
        name: "" if name == place else value
        for name, value in {
            "info": "an API",
            "description": "lists",
            "operationId": "list",
            "servers": "[{url: https://example.com/v1}]",
            "security": "[]",
            "path": "{get: {responses: {200: {}}}}",
            "get": "{responses: {200: {}}}",
            "url": "{}",
        }.items()
    }
    text = f"""
openapi: 3.0.2
info:
  title: Pets
  version: "1"
  description: {fields["info"]}
servers: {fields["servers"]}
security: {fields["security"]}
paths:
  /pets:
    get:
      description: {fields["description"]}
      operationId: {fields["operationId"]}
      responses: {{200: {{description: fine}}}}
    put: {fields["get"]}
  /toys: {fields["path"]}
x-3scale-product: {fields["url"]}
"""
    api = read_api(text)

    assert api.info.title == "Pets"
    assert api.info.description == fields["info"]
    assert (api.server is None) == (place == "servers")
    verbs = [each.verb for each in api.calls if each.path == "/pets"]
    assert verbs == (["GET"] if place == "get" else ["GET", "PUT"])
    get = next(each.operation for each in api.calls if each.verb == "GET")
    assert (get.description, get.operation_id) == (fields["description"], fields["operationId"])


def test_null_of_json_is_absent_and_what_is_needed_is_still_asked_for() -> None:
    assert read_api('{"openapi":"3.0.0","info":{"title":"P","version":"1","description":null},"paths":{}}').calls == ()
    with pytest.raises(Unreadable):
        read_api('{"openapi":"3.0.0","info":{"title":null,"version":"1"},"paths":{}}')
