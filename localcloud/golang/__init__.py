"""Compiles servers from their Go modules if their programs are not available."""
