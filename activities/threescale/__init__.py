"""3scale: the client of the Account Management API, and the passes that synchronise objects with it.

`passes.py` has the pass, `effects.py` what it observes and does, the subclasses of `Subject` what differs by kind.
"""
