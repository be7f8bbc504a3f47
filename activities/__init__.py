"""Perdure's access to other systems: one package per API with its effects and errors, one per area with its passes."""
