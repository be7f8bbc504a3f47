"""The lifecycle of Greetings."""

from perdure_greeting.greeting import GreetingWorld, ObserveGreeting, decide
from workflows.durable_driver import Entity
from workflows.lifecycle_declaration import lifecycle


@lifecycle("Greeting", world=GreetingWorld, observe=ObserveGreeting, decide=decide)
class GreetingWorkflow(Entity[GreetingWorld]):
    """A Greeting.

    New ─► Shown ─until─► Over
    any ─► Waiting: no text, or another owner's ConfigMap has its name
    """
