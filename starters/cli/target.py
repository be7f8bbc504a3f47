"""The object a command is about: KIND NAMESPACE/NAME, the kind by any of its names and in any case."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated

import typer

from domain.identity import Kind, all_kinds

# RFC 1123 subdomains: the names of namespaces and of custom resources.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")

KindArgument = Annotated[
    str, typer.Argument(metavar="KIND", help="Kind or its plural, in any case: account, accounts.")
]
NameArgument = Annotated[str, typer.Argument(metavar="NAMESPACE/NAME", help="The object.")]


@dataclass(frozen=True)
class Target:
    """One object by name; its uid, and so its lifecycle, is found in the cluster."""

    kind: Kind
    namespace: str
    name: str

    @property
    def resource(self) -> str:
        """The kind as kubectl takes it without mistaking another group's."""
        return f"{self.kind.plural}.{self.kind.group}"

    def __str__(self) -> str:
        return f"{self.kind.name} {path(self.namespace, self.name)}"


def path(namespace: str, name: str) -> str:
    """An object as the commands take it: lifecycles of no object in particular may have no namespace."""
    return f"{namespace}/{name}" if namespace else name


def target(kind: str, name: str) -> Target:
    """The object that the arguments of a command name.

    Raises:
        typer.BadParameter: no such kind, one without lifecycles, or not of the form NAMESPACE/NAME; ends with exit
            code 2.
    """
    found = kind_named(kind)
    if not found.plural and "/" not in name:
        return Target(found, "", checked_name(name))
    namespace, slash, short = name.partition("/")
    if not (slash and namespace and short) or "/" in short:
        raise typer.BadParameter(f"{name!r} is not of the form NAMESPACE/NAME", param_hint="NAMESPACE/NAME")
    if not found.lifecycle:
        raise typer.BadParameter(f"a {found.name} has no lifecycle of its own", param_hint="KIND")
    return Target(found, checked_name(namespace), checked_name(short))


def checked_name(name: str, hint: str = "NAMESPACE/NAME") -> str:
    """A name as Kubernetes allows it, so that it may stand in queries and paths."""
    if not _NAME.fullmatch(name):
        raise typer.BadParameter(f"{name!r} is no name of a Kubernetes object", param_hint=hint)
    return name


def kind_named(word: str) -> Kind:
    """The kind of that name or plural, in any case, with or without its group (`accounts.aws.managed.openshift.io`)."""
    names = {name: kind for kind in all_kinds().values() for name in _names(kind)}
    if found := names.get(word.lower()):
        return found
    close = [names[name].name for name in get_close_matches(word.lower(), names, n=1)]
    hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(sorted(all_kinds()))}"
    raise typer.BadParameter(f"no kind is called {word!r}; {hint}", param_hint="KIND")


def _names(kind: Kind) -> tuple[str, ...]:
    names = (kind.name.lower(), kind.plural) if kind.plural else (kind.name.lower(),)
    return (*names, *(f"{name}.{kind.group}" for name in names if kind.group))
