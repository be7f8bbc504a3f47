"""Lets people read encrypted lifecycles in Temporal's web UI and command line."""
