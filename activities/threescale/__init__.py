"""3scale: the Account Management API, and the passes over the objects that are kept in sync with it.

| file | contents |
|---|---|
| `errors.py` | maps 3scale's answers to `engine.errors` |
| `call_limits.py` | limits per tenant: concurrent calls, a circuit breaker |
| `document_download.py` | documents of OpenAPIs and ActiveDocs at URLs |
| `client.py` | the calls of one tenant: paginated reads, repeatable writes |
| `tenant_concurrency.py` | all tenants of a worker: seats for passes, shared lists |
| `cache.py`, `secrets.py`, `document_sources.py` | objects and Secrets of the cluster, API documents |
| `subjects.py` | what a pass observes beside an object |
| `drift_sweep.py` | the sweep over all tenants |
| `response_cache.py` | what a worker remembers of 3scale between passes |
| `products.py`, `open_api.py` | subjects of Products and Backends, and of OpenAPIs, which make both |
| `documents.py` | subjects of ActiveDocs and policies |
| `developer_accounts.py`, `application_auth.py` | subjects of accounts, users and applications, of credentials |
| `promotion.py`, `tenant.py` | subjects of promotions and of Tenants |
| `passes.py`, `effects.py` | the pass, and what it observes and does |
| `pass_context.py`, `area.py` | what passes share, and how a worker gets it |
| `replaced_operator.py` | whether the 3scale operator still leads |
| `metrics.py` | metrics |
"""
