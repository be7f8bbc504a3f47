"""What Temporal stores of our lifecycles, made unreadable to it: keys in files, and the codec that uses them.

Payloads are encrypted: what workflows, activities, signals, queries and updates are given and answer, heartbeats,
summaries, and the messages and stack traces of failures. What Temporal itself searches and shows in lists stays
readable, by decision: ids, the names of workflows, activities and task queues, the search attributes, the types of
failures, and who runs what (the identities of workers). They hold names and phases, never contents.
"""

from engine.encryption.codec import EncryptionCodec, data_converter
from engine.encryption.keys import KeyRing, KeysUnreadable, UnknownKey

__all__ = ["EncryptionCodec", "KeyRing", "KeysUnreadable", "UnknownKey", "data_converter"]
