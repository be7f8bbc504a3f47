"""How lifecycles unfold in time: the shared loop (`entity`), and one package per area."""
