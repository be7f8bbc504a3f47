"""The local deployment: all servers that Perdure needs, as processes on loopback under one supervisor.

`deployment.py` is the entry point for programs, `cli.py` for people. The product does not import this package; its
commands join the CLI through an entry point.
"""
