"""How Perdure touches the world: one package per API with its effects and errors, one per area with its looks."""
