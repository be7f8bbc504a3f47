"""What Temporal stores of our lifecycles, encrypted: keys in files, and the codec that uses them.

Payloads are encrypted: arguments and answers, heartbeats, summaries, and the messages and stack traces of failures.
What Temporal itself searches and lists stays readable, by decision: ids, names of workflows, activities and task
queues, search attributes, types of failures, identities of workers. They hold names and phases, never contents.
"""

from engine.encryption.codec import EncryptionCodec, data_converter
from engine.encryption.keys import KeyRing, KeysUnreadable, UnknownKey

__all__ = ["EncryptionCodec", "KeyRing", "KeysUnreadable", "UnknownKey", "data_converter"]
