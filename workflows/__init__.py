"""How lifecycles run over time: the loop (`entity`), their declaration (`lifecycle`), and a module for each area."""
