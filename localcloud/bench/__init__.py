"""`perdure bench NAME`: figures measured on a fresh local deployment with production processes.

Figures are reported with the machine's load, never asserted.
"""
