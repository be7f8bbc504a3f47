"""A 3scale to test against: the Account Management and Master APIs, as far as programs that provision use them.

    __main__ ── server ── serving ── resources/* ── store (SQLite) ── tables
                  │          └── call, parameters, answers, refusals, names, addresses
                  ├── faults, ledger
                  ├── world ── places
                  └── api (control) ······ control, contract: for tests, demos and benchmarks

There is no 3scale to be had as a package, so this one is written from its public documentation and from what clients
meet: what it creates by itself, what it rewrites, what it refuses and in which words. It knows no gateway traffic,
billing, portal or statistics. One process serves a master and any number of tenants, each on a port of its own.
"""
