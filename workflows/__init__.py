"""How lifecycles unfold in time: the loop (`entity`), how one is declared (`lifecycle`), and a module for each area."""
