"""3scale: the Account Management API, as the lifecycles of its objects use it.

| file | holds |
|---|---|
| `errors.py` | the one mapping of what 3scale answers to `engine.errors` |
| `guard.py` | what one tenant may take of a process: calls at once, a circuit breaker |
| `pages.py` | documents of OpenAPIs and ActiveDocs at addresses |
| `client.py` | the calls of one tenant: reads in pages, writes that may be repeated |
"""
