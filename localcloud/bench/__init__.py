"""`perdure bench NAME`: the figures of the product, measured on a fresh local deployment with its production processes.

`figures.py` says what a figure is, `laboratory.py` how one is counted, `accounts.py`, `claims*.py` and `engine.py` what
is measured, `command.py` is the command line. Figures are told, never asserted: the machine's load stands beside them.
"""
