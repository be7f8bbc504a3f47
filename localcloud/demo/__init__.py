"""`perdure demo NAME`: start, apply and follow one example until its lifecycles have settled.

`command.py` is the command line, `stage.py` what a demo can observe and do, `view.py` the live table. Every other
module is one demo: a `Scenario`, listed in `scenarios.py`.
"""
