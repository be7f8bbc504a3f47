"""Compiling servers from their Go modules, where no program of theirs is at hand."""
