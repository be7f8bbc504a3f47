"""What wakes a Greeting: its spec, request annotations, and any change of its ConfigMap."""

from engine.kube import CONFIG_MAP
from perdure_greeting import GREETING, OF_LABEL
from starters.watch.owned import objects, owned

WATCHED = (objects(GREETING), owned(CONFIG_MAP, by=GREETING, label=OF_LABEL))
