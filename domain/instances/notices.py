"""Kubernetes Events about instances: on their objects, and on Nodes, which may be in workload clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from domain.identity import Key
from domain.instances import NODE
from domain.instances.resources import Node
from domain.notices import Notice
from domain.resource import CustomResource


def about(found: CustomResource) -> Key:
    return about_node(found.metadata.name) if isinstance(found, Node) else found.key


def about_node(name: str) -> Key:
    """A Node's key for Events. The uid is the Node's name, by which `kubectl describe` finds Events."""
    return Key(kind=NODE.name, namespace="", name=name, uid=name)


def on_each(
    objects: Iterable[Key], make: Callable[..., Notice], reason: str, message: str, *, cluster: str = ""
) -> tuple[Notice, ...]:
    """One notice for each object. `cluster` is the workload cluster of Nodes, as `namespace/name`."""
    return tuple(
        make(reason, message, about=each, cluster=cluster if each.kind == NODE.name else "") for each in objects
    )
