"""Greetings: each keeps a text in a ConfigMap of the same name, until a time that it may set."""

from domain.identity import Kind

AREA = "greetings"
GREETING = Kind(name="Greeting", group="greetings.example.com", version="v1", plural="greetings", area=AREA)
KINDS = (GREETING,)
OF_LABEL = "greetings.example.com/of"  # our mark on a ConfigMap: the name of its Greeting
