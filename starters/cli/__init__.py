"""The `perdure` command: Perdure's processes, and a person's levers on every lifecycle."""
