"""Perdure's access to other systems: a package for each API, with its effects and errors, and one for each area."""
