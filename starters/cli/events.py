"""`perdure events` runs the event consumer; `perdure events list`, `show` and `redrive` handle its dead letters.

A dead letter that a command reads is hidden from other readers for some seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from engine import command_groups
from starters.cli.output import CommandError, Format, FormatOption, age, facts, printed, say, table, utc_now, warn
from starters.cli.processes import execute_with_places
from starters.cli.served_queues import places_of_settings
from starters.cli.state_directory import StateOption

if TYPE_CHECKING:
    from domain.instances.message_unwrapping import Message
    from domain.instances.served_queues import Place
    from starters.events.dead_letters import DeadLetter, Home
    from starters.events.sqs_queues import SqsQueue

MOST = 1000

QueueOption = Annotated[
    str, typer.Option("--queue", metavar="NAME", help="Only queues whose ACCOUNT/REGION/NAME contains this text.")
]
MessageArgument = Annotated[str, typer.Argument(metavar="ID", help="The id of a dead letter, or its beginning.")]
MessagesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="ID...", help="The ids of dead letters, or their beginnings.")
]


def register(app: typer.Typer) -> None:
    events = typer.Typer(invoke_without_command=True)
    events.callback()(consume)
    events.command("list")(list_dead)
    events.command("show")(show)
    events.command("redrive")(redrive)
    app.add_typer(events, name="events", rich_help_panel=command_groups.PROCESSES)


def consume(context: typer.Context, state: StateOption = None) -> None:
    """Read EC2's events from SQS and wake the instances' lifecycles; subcommands handle dead letters."""
    if context.invoked_subcommand is not None:
        return
    from starters.events.main import run_events

    execute_with_places("events", run_events)


def list_dead(queue: QueueOption = "", output: FormatOption = Format.TEXT, state: StateOption = None) -> None:
    """List the dead letters with their reasons."""
    found = _look(queue)
    if printed(found, output):
        return
    if found:
        now = utc_now()
        rows = [(each.queue, each.message_id, age(each.sent_at, now), each.reason, each.told) for each in found]
        table(("queue", "id", "age", "reason", "events"), rows)
    else:
        say("no dead letters")


def show(
    message: MessageArgument, queue: QueueOption = "", output: FormatOption = Format.TEXT, state: StateOption = None
) -> None:
    """Show one dead letter with its body."""
    found = _named(_look(queue), [message])[0]
    if printed(found, output):
        return
    now = utc_now()
    details = (("queue", found.queue), ("id", found.message_id), ("old id", found.of), ("age", age(found.sent_at, now)))
    facts([*details, ("reason", found.reason), ("events", found.told), *sorted(found.attributes.items())])
    say(found.body)


def redrive(
    messages: MessagesArgument = None,
    everything: Annotated[bool, typer.Option("--all", help="Every dead letter.")] = False,
    queue: QueueOption = "",
    state: StateOption = None,
) -> None:
    """Send dead letters to their queue again."""
    if bool(messages) is everything:
        raise typer.BadParameter("give the ids of dead letters, or --all")
    from starters.events import dead_letters

    chosen = {each.message_id for each in _named(_look(queue), messages)} if messages else set()
    sent = _of_each(queue, lambda dead, home: dead_letters.redrive(dead, home, chosen, most=MOST))
    for each in sent:
        say(f"{each.message_id}: {each.told}")
    if not sent:
        warn("no dead letter was sent again")
    if everything and len(sent) >= MOST:
        warn(f"at most {MOST} dead letters of a queue are sent at a time: `perdure events list` shows the rest")


def _look(queue: str) -> list[DeadLetter]:
    from starters.events import dead_letters

    return _of_each(queue, lambda dead, home: dead_letters.dead_letters(dead, most=MOST, home=home))


def _named(found: Iterable[DeadLetter], names: Iterable[str]) -> list[DeadLetter]:
    known, chosen = list(found), []
    for name in names:
        fitting = [each for each in known if each.message_id.startswith(name)]
        if len(fitting) != 1:
            problem = f"{len(fitting)} dead letters have" if fitting else "no dead letter has"
            raise CommandError(f"{problem} an id that begins with {name!r}", "`perdure events list` lists the ids")
        chosen += fitting
    return chosen


def _of_each(queue: str, work: Callable[[SqsQueue, Home], Awaitable[list[DeadLetter]]]) -> list[DeadLetter]:
    """Run `work` on the dead-letter queue of each queue whose name contains `queue`; once if queues share it."""
    from activities.aws.queue_account_roles import Places
    from domain.instances.event_topology import REGION_DEAD
    from domain.instances.served_queues import with_queues
    from engine.errors import Absent, ApiError
    from engine.settings import settings
    from starters.events.dead_letters import LOOKING, source_of
    from starters.events.sqs_queues import SqsQueue

    known = settings()
    served = with_queues(places_of_settings())
    chosen = [place for place in served if queue in str(place)]
    if not chosen:
        problem = f"no queue's name contains {queue!r}" if known.instances_queues else "no queue is configured"
        raise CommandError(problem, "PERDURE_INSTANCES_QUEUES names the queues that are served: ACCOUNT/REGION[/QUEUE]")
    callers, threads = Places(connections=4, observing=known.observing), ThreadPoolExecutor(4)

    def opened(place: Place, name: str = "") -> SqsQueue:
        return SqsQueue(place, callers.caller(place), threads, wait=timedelta(0), visibility=LOOKING, name=name)

    alive = {str(place): opened(place) for place in chosen}

    async def dead_of(place: Place) -> tuple[str, SqsQueue] | None:
        for name in dict.fromkeys((place.dead_letters, REGION_DEAD)):
            dead = opened(place, name)
            if await dead.exists():
                return name, dead
        return None

    async def all_of_them() -> list[DeadLetter]:
        found: list[DeadLetter] = []
        searched: set[str] = set()
        for place in chosen:
            there = await dead_of(place)
            if there is None:
                warn(f"{place} has no dead-letter queue: neither {place.dead_letters} nor {REGION_DEAD} exists")
                continue
            name, dead = there
            if dead.name in searched:
                continue
            searched.add(dead.name)

            def home(message: Message, name: str = name, place: Place = place) -> SqsQueue | None:
                source = source_of(message, name, place, served)
                return alive.get(str(source)) if source else None

            try:
                found += await work(dead, home)
            except Absent as error:
                warn(f"{place}: {error}")
        return found

    try:
        return asyncio.run(all_of_them())
    except ApiError as error:
        raise CommandError(error.message) from error
