"""The object of a command: KIND NAMESPACE/NAME. KIND is any name that kubectl accepts for the kind; case is ignored."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any

import typer

from domain.identity import Kind, all_kinds, objectless
from domain.instances import AUTO_SCALING_GROUP, AWS_MACHINE_POOL, EC2_INSTANCE, EXTERNAL_KINDS, NODE
from domain.model import Model
from engine.settings import settings
from starters.cli.completion import complete_kinds, complete_objects

# RFC 1123 subdomains: the names of namespaces and of custom resources.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")

# Names of AWS objects and accounts. Quotes are not allowed, because the names are inserted into Temporal's queries.
_OUTSIDE = re.compile(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+")

# Short names of Kubernetes' own kinds.
_KUBERNETES = {"svc": "service"}

# Short names of Nodes, and of Cluster API and its AWS provider.
_CLUSTER_API = {"awsm": "awsmachine", "awsmp": "awsmachinepool", "ma": "machine", "no": "node"}


def kind_argument(meaning: str) -> Any:
    return typer.Argument(metavar="KIND", help=meaning, autocompletion=complete_kinds)


def name_argument(meaning: str) -> Any:
    return typer.Argument(metavar="NAMESPACE/NAME", help=meaning, autocompletion=complete_objects)


KindArgument = Annotated[str, kind_argument("Kind, plural or short name, such as account or lb; case is ignored.")]
NameArgument = Annotated[str, name_argument("The object.")]
# A kind without custom resources, such as ClaimBinder, may have only one lifecycle.
NameIfSeveral = Annotated[
    str, name_argument("The object. Not needed for a kind with only one lifecycle, such as claimbinder.")
]


class OfObject(Model):
    """The base class of a command's answers about one object."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True)
class Target:
    kind: Kind
    namespace: str
    name: str

    @property
    def fields(self) -> dict[str, str]:
        return {"kind": self.kind.name, "namespace": self.namespace, "name": self.name}

    @property
    def resource(self) -> str:
        return f"{self.kind.plural}.{self.kind.group}".rstrip(".")

    def __str__(self) -> str:
        return f"{self.kind.name} {path(self.namespace, self.name)}"


def path(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


def target(kind: str, name: str) -> Target:
    """The object that the arguments name. Raises typer.BadParameter if the kind is unknown or has no lifecycles, or if
    the name is malformed.
    """
    found = _of_others(kind) or kind_named(kind)
    if not found.plural:
        return _without_object(found, name)
    if not name:
        raise typer.BadParameter(f"Missing argument: which {found.name}?", param_hint="NAMESPACE/NAME")
    if found == NODE:
        return Target(found, "", checked_name(name, "NAME"))
    namespace, slash, short = name.partition("/")
    if not (slash and namespace and short) or "/" in short:
        raise typer.BadParameter(f"{name!r} is not of the form NAMESPACE/NAME", param_hint="NAMESPACE/NAME")
    if not found.lifecycle and found not in EXTERNAL_KINDS:
        raise typer.BadParameter(f"a {found.name} has no lifecycle of its own", param_hint="KIND")
    return Target(found, checked_name(namespace), checked_name(short))


def _without_object(kind: Kind, name: str) -> Target:
    only = objectless(kind.name, "", settings().claims_domain)
    if not name and len(only) == 1:
        return Target(kind, only[0].namespace, only[0].name)
    namespace, _, short = name.rpartition("/")
    if not namespace:
        return Target(kind, "", checked_name(short))
    if not _OUTSIDE.fullmatch(name):
        raise typer.BadParameter(f"{name!r} is not of the form NAMESPACE/NAME", param_hint="NAMESPACE/NAME")
    return Target(kind, namespace, short)


def usable_outside(name: str) -> bool:
    """Whether an AWS object's name can be used in a Temporal query."""
    return _OUTSIDE.fullmatch(f"x/{name}") is not None and "/" not in name


def _of_others(word: str) -> Kind | None:
    names = {name: kind for kind in EXTERNAL_KINDS for name in _with_group(kind, _names(kind))}
    return names.get(_CLUSTER_API.get(word.lower(), word.lower()))


def checked_name(name: str, hint: str = "NAMESPACE/NAME") -> str:
    """Return the name. Raises typer.BadParameter unless it is valid in Kubernetes, thus safe in queries and paths."""
    if not _NAME.fullmatch(name):
        raise typer.BadParameter(f"{name!r} is not a valid name of a Kubernetes object", param_hint=hint)
    return name


def kind_named(word: str) -> Kind:
    """The kind whose name, plural or short name is `word`, with or without group (`accounts.example.com`). Case is
    ignored.

    Raises typer.BadParameter if there is none, or if it is in `EXTERNAL_KINDS`.
    """
    domain = settings().claims_domain
    kinds = [kind.under(domain) for kind in all_kinds().values()]
    names = {name: kind for kind in kinds for name in _with_group(kind, _names(kind))}
    lowered = _KUBERNETES.get(word.lower(), word.lower())
    if others := _of_others(word):
        behind = AUTO_SCALING_GROUP if others == AWS_MACHINE_POOL else EC2_INSTANCE
        message = f"{others.plural} have no lifecycles of their own; use {behind.name.lower()}"
        raise typer.BadParameter(message, param_hint="KIND")
    if found := names.get(lowered) or _short_names(domain).get(lowered):
        return found
    close = [names[name].name for name in get_close_matches(word.lower(), names, n=1)]
    hint = f"did you mean {close[0]}?" if close else f"the kinds are: {', '.join(sorted(all_kinds()))}"
    raise typer.BadParameter(f"no kind is called {word!r}; {hint}", param_hint="KIND")


def _names(kind: Kind) -> tuple[str, ...]:
    return (kind.name.lower(), kind.plural) if kind.plural else (kind.name.lower(),)


def _short_names(domain: str) -> dict[str, Kind]:
    """The kinds by short name. This is slow, because it generates the CRDs."""
    from domain.custom_resources import custom_resources

    models = [(each.kind_of.under(domain), each.definition.short_names) for each in custom_resources()]
    return {name: kind for kind, short in models for name in _with_group(kind, short)}


def _with_group(kind: Kind, names: tuple[str, ...]) -> tuple[str, ...]:
    return (*names, *(f"{name}.{kind.group}" for name in names if kind.group))
