"""3scale: the Account Management API, and the passes over the objects that are kept in step with it.

| file | holds |
|---|---|
| `errors.py` | the one mapping of what 3scale answers to `engine.errors` |
| `guard.py` | what one tenant may take of a process: calls at once, a circuit breaker |
| `pages.py` | documents of OpenAPIs and ActiveDocs at addresses |
| `client.py` | the calls of one tenant: reads in pages, writes that may be repeated |
| `tenants.py` | all tenants of a worker: seats for passes, lists that several ask for |
| `cache.py`, `secrets.py`, `sources.py` | objects and Secrets of the cluster, documents of APIs |
| `subjects.py` | what a pass observes beside an object |
| `sweeps.py` | the sweep over all tenants |
| `kept.py` | what a worker keeps of 3scale from one pass to the next |
| `products.py`, `open_api.py` | the same of Products and Backends, and of OpenAPIs, of which both are made |
| `documents.py` | the same of ActiveDocs and policies |
| `developer_accounts.py`, `application_auth.py` | the same of accounts, users and applications, of credentials |
| `promotion.py`, `tenant.py` | the same of promotions and of Tenants |
| `passes.py`, `effects.py` | the pass, and what it observes and does |
| `ground.py`, `area.py` | what passes stand on, and how a worker gets them |
| `predecessor.py` | whether the 3scale operator still leads |
| `metrics.py` | numbers |
"""
