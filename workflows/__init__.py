"""How lifecycles run over time: the loop, how they are declared, and a module per area."""
