"""`perdure demo NAME`: one example, brought up, applied and watched until its lifecycles have settled.

`command.py` is the command line, `stage.py` what a demo can see and do, `view.py` the live table, and each further
module one demo: a `Scenario`, listed in `scenarios.py`.
"""
