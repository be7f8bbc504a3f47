"""The AWS emulator: moto's server, extended and corrected where moto differs from AWS in ways that matter here.

`python -m localcloud.aws --host 127.0.0.1 --port P --state FILE [--config FILE]` serves all of moto's APIs on one port,
plus a control API under `/perdure/`. One module per service adds what moto 5.2.5 lacks. `server` handles each call
before moto: it identifies (`wire`), authenticates (`identity`), counts (`ledger`) and disturbs it (`faults`), and has
changed state saved (`persistence`). `control` is the typed client; `contract` and `events_contract` hold the shared
shapes.
"""
