"""What exists and what should happen: custom resources, actions and pure decisions. No I/O, no Temporal."""
