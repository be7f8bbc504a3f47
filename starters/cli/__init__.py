"""The `perdure` command: starts Perdure's processes, and shows and controls lifecycles."""
