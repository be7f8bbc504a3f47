"""The AWS emulator: moto's server, extended and corrected where moto 5.2.5 differs from AWS in ways that matter here.

`python -m localcloud.aws --host 127.0.0.1 --port P --state FILE [--config FILE]` serves moto's APIs and a control API
under `/perdure/` on one port. Before moto, `server` identifies (`wire`), authenticates (`identity`), counts (`ledger`)
and disturbs (`faults`) each call; `persistence` saves changed state. `control` is the typed client, `contract` and
`events_contract` its shapes.
"""
