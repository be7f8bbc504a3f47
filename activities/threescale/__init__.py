"""3scale: the Account Management API, and the passes over the objects that are synchronised with it.

`passes.py` has the pass, `effects.py` what it observes and does; each kind's subject is in a file of its own.
"""
