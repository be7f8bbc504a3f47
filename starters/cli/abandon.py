"""`perdure abandon`: completes a deletion that cannot finish, and lists what stays behind in the cloud.

The call that removes the finalizers also records the person, the reason and the time, because the object may be gone
after that call.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from domain.control_annotations import ABANDONED
from domain.resource import timestamp
from starters.cli.object_reference import KindArgument, NameArgument, OfObject, Target, target
from starters.cli.output import CommandError, Format, FormatOption, printed, say, utc_now, warn
from starters.cli.state_directory import StateOption

if TYPE_CHECKING:
    from domain.identity import Kind
    from engine.kube import JsonObject
    from starters.cli.session import ClusterSession


class Abandoned(OfObject):
    who: str
    why: str
    when: str
    left_behind: tuple[str, ...]
    still_held_by: tuple[str, ...]


def abandon(
    kind: KindArgument,
    name: NameArgument,
    reason: Annotated[str, typer.Option("--reason", "-r", help="The reason; it is recorded.")],
    skip_cleanup: Annotated[
        bool,
        typer.Option(
            "--skip-cleanup", help="For an AccountClaim or Account: delete it without the clean-up that AWS refuses."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    output: FormatOption = Format.TEXT,
    state: StateOption = None,
) -> None:
    """Remove Perdure's finalizer from an object whose deletion is stuck, and list what stays behind in the cloud.

    With --skip-cleanup, the lifecycle of an AccountClaim or Account deletes the object without the clean-up in AWS. No
    other claim gets the AWS account.

    Example: perdure abandon loadbalancer shop/web --reason "the project was deleted"
    """
    from starters.cli.force_release import release
    from starters.cli.session import perform_on_cluster
    from starters.cli.wake_lifecycles import wake_lifecycle

    reference = target(kind, name)
    if not reason.strip():
        raise typer.BadParameter("give a reason; it is recorded on the object", param_hint="--reason")
    if skip_cleanup:
        release(reference, reason, output)
        return
    stuck = perform_on_cluster(lambda session: _stuck(session, reference))
    left = outside(reference, stuck)
    _say_what_stays(reference, left)
    if not yes and not typer.confirm(f"Abandon {reference}?", err=True):
        raise CommandError(f"{reference}: not abandoned", "--yes skips this question")
    done = perform_on_cluster(lambda session: _release(session, reference, stuck, reason, left))
    if not printed(done, output):
        held = ", ".join(done.still_held_by)
        say(f"{reference}: abandoned" + (f"; other finalizers remain: {held}" if held else ""))
    wake_lifecycle(reference, stuck)


async def _stuck(session: ClusterSession, reference: Target) -> JsonObject:
    from engine.kube.json import text
    from starters.cli.lifecycle import find_object

    obj = await find_object(session, reference)
    if not set(_finalizers(obj)) & _ours(reference.kind):
        held = ", ".join(_finalizers(obj))
        raise CommandError(
            f"{reference} has no finalizer of Perdure's",
            f"its finalizers are: {held}" if held else "it has no finalizers",
        )
    if not text(obj, "metadata", "deletionTimestamp"):
        raise CommandError(
            f"{reference} is not being deleted: its lifecycle would put the finalizer back",
            f"first: kubectl delete --wait=false -n {reference.namespace} {reference.resource} {reference.name}",
        )
    return obj


async def _release(
    session: ClusterSession, reference: Target, seen: JsonObject, why: str, shown: Sequence[str]
) -> Abandoned:
    from engine.errors import Absent
    from engine.kube.json import text
    from starters.cli.records import record
    from starters.cli.session import FIELD_MANAGER, person

    obj = await _stuck(session, reference)
    if text(obj, "metadata", "uid") != text(seen, "metadata", "uid"):
        raise CommandError(
            f"{reference} was deleted, and a new object has that name now",
            "check the new object, and run the command again",
        )
    left = outside(reference, obj)
    if left != tuple(shown):
        _say_what_stays(reference, left)
    ours = _ours(reference.kind)
    others = tuple(name for name in _finalizers(obj) if name not in ours)
    done = Abandoned(
        **reference.fields,
        who=person(),
        why=why,
        when=timestamp(utc_now()),
        left_behind=left,
        still_held_by=others,
    )
    note = json.dumps({"who": done.who, "why": done.why, "when": done.when})
    try:
        await session.cluster_of(reference.kind).patch(
            reference.kind,
            reference.namespace,
            reference.name,
            {"metadata": {"annotations": {ABANDONED: note}, "finalizers": list(others)}},
            resource_version=text(obj, "metadata", "resourceVersion"),
            field_manager=FIELD_MANAGER,
        )
    except Absent:
        warn(f"{reference} is gone already")
    else:
        await record(session, reference, obj, "Abandoned", f"{why}; left behind: {'; '.join(left) or 'nothing known'}")
    return done


def outside(reference: Target, obj: JsonObject) -> tuple[str, ...]:
    from domain.custom_resources import custom_resources
    from domain.loadbalancers import SERVICE
    from domain.loadbalancers.names import load_balancer_name
    from domain.reading import Malformed, read
    from domain.resource import ObjectMeta

    if reference.kind == SERVICE:
        name = load_balancer_name(ObjectMeta(namespace=reference.namespace, name=reference.name))
        return (f"LoadBalancer {name} with its objects in OpenStack, if it exists",)

    model = next((model for model in custom_resources() if model.kind_of.name == reference.kind.name), None)
    if model is None:
        return ()
    known = read(model, obj)
    if isinstance(known, Malformed):
        return (f"unknown objects: its custom resource cannot be read ({known.problem})",)
    return known.outside


def _say_what_stays(reference: Target, left: Sequence[str]) -> None:
    warn(f"{reference} leaves behind" + (":" if left else " no object that is known"))
    for line in left:
        warn(f"  {line}")


def _ours(kind: Kind) -> frozenset[str]:
    from domain.claims.domain_names import DomainNames
    from engine.settings import settings

    names = DomainNames(domain=settings().claims_domain)
    ours = names.our_finalizers if kind.finalizer == names.finalizer else (kind.finalizer,)
    return frozenset(filter(None, ours))


def _finalizers(obj: JsonObject) -> tuple[str, ...]:
    from engine.kube.json import sequence

    return tuple(item for item in sequence(obj, "metadata", "finalizers") if isinstance(item, str))
