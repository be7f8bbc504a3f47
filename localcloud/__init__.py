"""The local deployment: all servers that Perdure needs, as processes on loopback under one supervisor.

`deployment.py` is the entry point for programs, `cli.py` for people. `services.py` is the table of services,
`supervisor.py` runs them, `state.py` lays out the state directory. The product does not import this package; its
commands join the CLI through an entry point.
"""
