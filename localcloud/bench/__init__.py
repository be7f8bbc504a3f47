"""`perdure bench NAME`: figures measured on a fresh local deployment with production processes.

Figures are reported, never asserted, together with the machine's load.
"""
