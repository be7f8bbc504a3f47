"""The 3scale simulator: the Account Management and Master APIs, as far as provisioning programs use them.

    __main__ ── server ── serving ── resources/* ── store (SQLite) ── tables
                  │          └── call, parameters, answers, refusals, names, addresses
                  ├── faults, ledger
                  ├── world ── places
                  └── api (control) ······ control, contract: for tests, demos and benchmarks

3scale is not available as a package, so this is written from its public documentation and from clients' observations:
what it creates, rewrites and refuses, and with which messages. There is no gateway traffic, billing, portal or
statistics. One process serves a master and its tenants, each on its own port.
"""
