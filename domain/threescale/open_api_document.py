"""Strict parsing of an untrusted OpenAPI document in JSON or YAML.

A document is refused if it is too long, is nested too deeply, is too large after aliases are resolved, has a duplicate
key, or refers to another document. YAML dates stay texts, as in JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from urllib.parse import unquote, urlsplit

import yaml
from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator

from domain.model import Model
from domain.reading import problem_of
from domain.resource import without_nulls
from domain.schema import Json, JsonObject

MOST_BYTES = 2 * 1024 * 1024
DEEPEST = 100
MOST_NODES = 200_000
# A longer chain of references counts as a cycle.
_MOST_STEPS = 8

PRODUCT_EXTENSION = "x-3scale-product"
OPERATION_EXTENSION = "x-3scale-operation"

_VERBS = ("connect", "delete", "get", "head", "options", "patch", "post", "put", "trace")
_VARIABLE = re.compile(r"\{([^{}]+)\}")


class Unreadable(Exception):  # noqa: N818 - named like the errors in engine.errors
    pass


class _Strict(Model):
    model_config = ConfigDict(frozen=True, populate_by_name=True, extra="ignore", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: object) -> object:
        """As with the replaced operator, a null means that the field is absent."""
        return without_nulls(value)


class Info(_Strict):
    title: str = Field(min_length=1)
    version: str = Field(min_length=1)
    description: str = ""


class Variable(_Strict):
    default: str


class Server(_Strict):
    url: str
    variables: dict[str, Variable] = {}

    @property
    def address(self) -> str:
        known = self.variables
        return _VARIABLE.sub(lambda found: known[found[1]].default if found[1] in known else found[0], self.url)


class Scheme(_Strict):
    type: str
    name: str = ""
    in_: str = Field("", alias="in")
    flows: dict[str, object] = {}


class Operation(_Strict):
    operation_id: str = Field("", alias="operationId")
    description: str = ""
    responses: dict[str, object] = Field(min_length=1)
    extension: JsonObject = Field({}, alias=OPERATION_EXTENSION)


class Call(Model):
    verb: str
    path: str
    operation: Operation


class Api(Model):
    info: Info
    server: Server | None
    security: tuple[Scheme, ...]
    calls: tuple[Call, ...]
    extension: JsonObject

    @property
    def host(self) -> str:
        parts = urlsplit(self.server.address if self.server else "")
        return f"{parts.scheme or 'https'}://{parts.netloc.rpartition('@')[2]}"

    @property
    def base_path(self) -> str:
        return unquote(urlsplit(self.server.address if self.server else "").path).removesuffix("/")


class _Root(_Strict):
    openapi: str = Field(pattern=r"^3\.\d")
    info: Info
    servers: tuple[Server, ...] = Field((), strict=False)
    paths: dict[str, dict[str, object]]
    security: tuple[dict[str, object], ...] = Field((), strict=False)
    extension: JsonObject = Field({}, alias=PRODUCT_EXTENSION)

    @field_validator("paths", mode="before")
    @classmethod
    def _drop_empty_paths(cls, value: object) -> object:
        return without_nulls(value)


def read_api(text: str) -> Api:
    """Results are cached, because a long document takes seconds. Raises Unreadable."""
    found = _read(text)
    if isinstance(found, str):
        raise Unreadable(found)
    return found


@lru_cache(maxsize=32)
def _read(text: str) -> Api | str:
    try:
        return _api(parsed(text))
    except Unreadable as problem:
        return str(problem)


def _api(document: JsonObject) -> Api:
    _refuse_circles(document)
    try:
        root = _Root.model_validate(document)
        return Api(
            info=root.info,
            server=_usable(root.servers),
            security=tuple(_schemes(document, root.security)),
            calls=tuple(sorted(_calls(document, root.paths), key=lambda each: (each.path, each.verb))),
            extension=root.extension,
        )
    except ValidationError as error:
        raise Unreadable(problem_of(error)) from None


def parsed(text: str) -> JsonObject:
    if len(text.encode()) > MOST_BYTES:
        raise Unreadable(f"longer than {MOST_BYTES} bytes")
    try:
        whole = _json(text) if text.lstrip().startswith("{") else _yaml(text)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise Unreadable(f"neither JSON nor YAML: {_first_line(error)}") from None
    _measure(whole)
    if not isinstance(whole, dict):
        raise Unreadable(_instead_of_object(text, whole))
    return whole


def _instead_of_object(text: str, whole: Json) -> str:
    if text.lstrip()[:1] == "<":
        return "an HTML or XML page instead of an OpenAPI document: does its address ask for a login?"
    return "empty" if whole is None else "a list or a single value, where an object is needed"


class _Loader(yaml.CSafeLoader):
    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in listed if tag != "tag:yaml.org,2002:timestamp"]
        for first, listed in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        if not isinstance(node, yaml.MappingNode):
            return super().construct_mapping(node, deep=deep)
        _object([(str(key.value), None) for key, _ in node.value if isinstance(key, yaml.ScalarNode)])
        self.flatten_mapping(node)
        return {
            _name(self.construct_object(key, deep=True)): self.construct_object(value, deep=True)
            for key, value in node.value
        }


def _json(text: str) -> Json:
    try:
        whole: Json = json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError:
        with suppress(yaml.YAMLError):
            return _yaml(text)  # YAML may begin with a brace, too
        raise
    return whole


def _yaml(text: str) -> Json:
    depth, nodes = 0, 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        nodes += isinstance(event, yaml.NodeEvent)
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        _limit(depth, nodes)
    return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader


def _object(pairs: Iterable[tuple[str, object]]) -> JsonObject:
    known: JsonObject = {}
    for name, value in pairs:
        if name in known:
            raise ValueError(f"{name!r} occurs twice in one object")
        known[name] = value
    return known


def _name(key: object) -> str:
    if isinstance(key, dict | list):
        raise ValueError("a key that is not a string")
    return key if isinstance(key, str) else json.dumps(key)


def _measure(whole: Json) -> None:
    """Aliases are resolved here, so an alias counts with all values that it refers to. Raises Unreadable."""
    left: list[tuple[Json, int]] = [(whole, 1)]
    nodes = 0
    while left:
        value, depth = left.pop()
        nodes += 1
        _limit(depth, nodes + len(left))
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        left += [(each, depth + 1) for each in inner]


def _limit(depth: int, nodes: int) -> None:
    if depth > DEEPEST:
        raise Unreadable(f"deeper than {DEEPEST} levels")
    if nodes > MOST_NODES:
        raise Unreadable(f"more than {MOST_NODES} values")


def _calls(document: JsonObject, paths: Mapping[str, JsonObject]) -> Iterable[Call]:
    for path, item in paths.items():
        if path.startswith("x-"):
            continue
        if not path.startswith("/"):
            raise Unreadable(f"paths: {path!r} does not begin with a slash")
        whole = _followed(document, item)
        for verb in _VERBS:
            if whole.get(verb) is not None:
                yield Call(verb=verb.upper(), path=path, operation=_operation(whole[verb], f"{verb.upper()} {path}"))


def _operation(value: Json, where: str) -> Operation:
    try:
        return Operation.model_validate(value)
    except ValidationError as error:
        raise Unreadable(f"{where}: {problem_of(error)}") from None


def _schemes(document: JsonObject, security: Iterable[JsonObject]) -> Iterable[Scheme]:
    components = document.get("components")
    known = components.get("securitySchemes") if isinstance(components, dict) else None
    for name in (name for requirement in security for name in requirement):
        scheme = known.get(name) if isinstance(known, dict) else None
        if not isinstance(scheme, dict):
            raise Unreadable(f"security: {name!r} is not among the security schemes")
        yield Scheme.model_validate(_followed(document, scheme))


def _followed(document: JsonObject, item: JsonObject) -> JsonObject:
    for _ in range(_MOST_STEPS):
        reference = item.get("$ref")
        if not isinstance(reference, str):
            return item
        item = _place(document, reference)
    raise Unreadable(f"{reference}: circular references")


def _refuse_circles(document: JsonObject) -> None:
    """Refuse a component whose `$ref` leads back to the component. Recursion inside a schema is allowed."""
    components = document.get("components")
    for section, named in components.items() if isinstance(components, dict) else ():
        for name, item in named.items() if isinstance(named, dict) else ():
            if isinstance(item, dict) and _leads_in_a_circle(document, item):
                raise Unreadable(f"components.{section}.{name}: circular references")


def _leads_in_a_circle(document: JsonObject, item: JsonObject) -> bool:
    seen: set[str] = set()
    while isinstance(reference := item.get("$ref"), str) and reference.startswith("#/"):
        if reference in seen:
            return True
        seen.add(reference)
        item = _place(document, reference)
    return False


def _place(document: JsonObject, reference: str) -> JsonObject:
    if not reference.startswith("#/"):
        raise Unreadable(f"{reference}: references must stay within the document")
    found: Json = document
    for step in reference[2:].split("/"):
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, dict) else None
    if not isinstance(found, dict):
        raise Unreadable(f"{reference}: does not exist")
    return found


def _usable(servers: tuple[Server, ...]) -> Server | None:
    if not servers:
        return None
    try:
        parts = urlsplit(servers[0].address)
        _ = parts.port
    except ValueError as error:
        raise Unreadable(f"servers[0].url: {error}") from None
    if missing := _VARIABLE.findall(servers[0].address):
        raise Unreadable(f"servers[0].variables: missing {', '.join(sorted(set(missing)))}")
    return servers[0]


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
