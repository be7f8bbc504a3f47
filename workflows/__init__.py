"""How lifecycles run over time: the loop (`durable_driver`), how they are declared (`lifecycle`), a module per area."""
