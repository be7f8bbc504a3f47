"""The local deployment: every server that Perdure needs, as real processes on loopback, under one supervisor.

`deployment.py` is the way in for programs (demos, tests), `cli.py` for people. What runs is one table in
`services.py`; `supervisor.py` keeps it running; `state.py` says where everything lies. Nothing of the product imports
this package: its commands join the CLI through an entry point.
"""
