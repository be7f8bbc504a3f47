"""Encryption of what Temporal stores about our lifecycles: keys in files, and the codec.

Payloads and failures' messages are encrypted. What Temporal searches stays readable: ids, names of workflows,
activities and queues, search attributes. These contain names and phases, never contents.
"""

from engine.encryption.codec import EncryptionCodec, data_converter
from engine.encryption.keys import KeyRing, KeysUnreadable, UnknownKey

__all__ = ["EncryptionCodec", "KeyRing", "KeysUnreadable", "UnknownKey", "data_converter"]
