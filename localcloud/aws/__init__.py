"""The AWS emulator: moto's server, corrected where moto 5.2.5 differs from AWS in ways that matter here.

Each call is identified (`wire`), authenticated (`identity`), counted (`ledger`) and disturbed (`faults`) before moto;
`persistence` saves changed state.
"""
