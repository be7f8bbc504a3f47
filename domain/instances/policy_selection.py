"""The InterruptionPolicy of an instance: the most specific one that fits it.

A policy selects an instance by its Kubernetes objects, and by its tags in EC2. EC2 is asked for tags only if a policy
selects by tags and all its other fields fit. If that policy would win, only labels are written until EC2 has answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from domain.instances.constants import DEPLOYMENT_LABEL, POOL_LABEL, SET_LABEL
from domain.instances.interruption_policy import ReactionPolicy
from domain.instances.resources import AWSMachine, AWSMachinePool, InterruptionPolicy, Machine, Node
from domain.model import Model

# As a tag's value in a selector, it matches any value.
ANY = "*"


class Selected(Model):
    """The properties by which policies select an instance. `tags` has the tags that EC2 was asked for, with None for a
    tag that the instance lacks.
    """

    clusters: tuple[str, ...] = ()
    namespace: str = ""
    pools: frozenset[str] = frozenset()
    labels: dict[str, str] = {}
    tags: dict[str, str | None] = {}


class Choice(Model):
    """The policy, and the keys of the tags that the choice depends on."""

    policy: ReactionPolicy
    tag_keys: tuple[str, ...] = ()


def selected(
    machine: AWSMachine | None,
    owner: Machine | None,
    pool: AWSMachinePool | None,
    tags: Mapping[str, str | None] | None,
    node: Node | None = None,
) -> Selected:
    objects = [each for each in (pool, machine, owner, node) if each is not None]
    labels = {name: value for each in objects for name, value in each.metadata.labels.items()}
    pools = {labels[name] for name in (DEPLOYMENT_LABEL, SET_LABEL, POOL_LABEL) if name in labels}
    pools |= {node.pool} if node and node.pool else set()
    return Selected(
        clusters=tuple(dict.fromkeys(each.cluster for each in objects if each.cluster)),
        namespace=objects[0].metadata.namespace if objects else "",
        pools=frozenset(pools | ({pool.metadata.name} if pool else set())),
        labels=labels,
        tags=dict(tags or {}),
    )


def choose(policies: Iterable[InterruptionPolicy], whom: Selected, default: ReactionPolicy) -> Choice:
    """The most specific policy that fits, or `default` from the settings if none fits. If the choice depends on
    tags that EC2 has not returned yet, the result is a policy that only labels.
    """
    fitting = sorted((each for each in policies if fits(each, whom)), key=specificity)
    keys = tuple(sorted({key for each in fitting for key in each.spec.selector.tags}))
    for each in fitting:
        tags = each.spec.selector.tags
        if not set(tags) <= set(whom.tags):
            return Choice(policy=ReactionPolicy(), tag_keys=keys)
        if all(_has(whom.tags[key], value) for key, value in tags.items()):
            return Choice(policy=each.spec.over(default, each.metadata.name), tag_keys=keys)
    return Choice(policy=default, tag_keys=keys)


def _has(tag: str | None, value: str) -> bool:
    return tag is not None and value in (ANY, tag)


def fits(policy: InterruptionPolicy, whom: Selected) -> bool:
    selector = policy.spec.selector
    return (
        (not selector.clusters or bool(set(selector.clusters) & set(whom.clusters)))
        and (not selector.namespaces or whom.namespace in selector.namespaces)
        and (not selector.pools or bool(whom.pools & set(selector.pools)))
        and selector.labels.items() <= whom.labels.items()
    )


def specificity(policy: InterruptionPolicy) -> tuple[tuple[int, ...], str]:
    selector = policy.spec.selector
    named = (selector.pools, selector.tags, selector.labels, selector.clusters, selector.namespaces)
    kinds = tuple(-bool(each) for each in named)
    return (*kinds, -len(selector.tags), -len(selector.labels)), policy.metadata.name
