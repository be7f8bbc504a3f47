"""`perdure demo NAME`: start, apply and follow one example until its lifecycles have settled.

`stage.py` is what a demo can observe and do, `view.py` the live table; each demo is a `Scenario`, listed in
`scenarios.py`.
"""
