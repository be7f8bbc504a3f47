"""Kubernetes Events about an instance's objects."""

from __future__ import annotations

from domain.instances import EXTERNAL_KINDS, NODE
from domain.instances.actions import About
from engine.clock import now
from engine.kube import KubeApi
from engine.kube.events import Said, Subject, event, record

COMPONENT = "perdure"
_KINDS = {kind.name: kind for kind in EXTERNAL_KINDS}


def node_subject(name: str) -> Subject:
    """A Node: the kubelet's Events use its name as its uid, and `kubectl describe` searches for that."""
    return Subject(NODE, "", name, name)


async def report(kube: KubeApi, about: About, said: Said) -> None:
    """Write an Event about the object; a failure is only logged."""
    if about.kind == NODE.name:
        subject = node_subject(about.name)
    else:
        subject = Subject(_KINDS[about.kind], about.namespace, about.name, about.uid)
    await record(kube, event(subject, said, now()))
