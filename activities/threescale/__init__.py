"""3scale: the client of the Account Management API, and the passes that synchronise objects with 3scale.

`passes.py` defines the pass, `effects.py` what a pass observes and does. Each kind has a subclass of `Subject`.
"""
