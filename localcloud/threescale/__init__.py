"""The 3scale simulator: the Account Management and Master APIs, as far as provisioning programs use them.

    __main__ ── server ── serving ── resources/* ── store (SQLite) ── tables
                  │          └── call, parameters, answers, refusals, names, addresses
                  ├── faults, ledger
                  ├── world ── places
                  └── api (control) ······ control, contract: for tests, demos and benchmarks

It is written from 3scale's public documentation and clients' observations, without gateway traffic, billing, portal or
statistics. One process serves a master and its tenants, each on its own port.
"""
