"""Encryption of what Temporal stores about our lifecycles: keys in files, and the codec.

Payloads and failures' messages are encrypted. What Temporal searches stays readable: search attributes, ids, and
the names of workflows, activities and queues. These contain names and phases, never contents of objects.
"""

from engine.encryption.codec import EncryptionCodec, data_converter
from engine.encryption.keys import KeyRing, KeysUnreadable, UnknownKey

__all__ = ["EncryptionCodec", "KeyRing", "KeysUnreadable", "UnknownKey", "data_converter"]
