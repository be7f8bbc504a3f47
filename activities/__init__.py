"""How Perdure touches the world: one package per API with its effects and error mapping, one per area for what it sees."""
