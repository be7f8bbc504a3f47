"""The AWS emulator: moto's server, corrected where moto 5.2.5 differs from AWS in ways that matter here.

Each call is identified (`wire`), authenticated (`identity`) and perhaps disturbed (`faults`) before moto handles it;
then it is counted (`ledger`). `persistence` saves changed state.
"""
