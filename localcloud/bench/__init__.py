"""`perdure bench NAME`: figures measured on a fresh local deployment with production processes.

`figures.py` defines figures, `laboratory.py` the counters, `command.py` the command line. Figures are reported, never
asserted, together with the machine's load.
"""
