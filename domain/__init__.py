"""Custom resources, actions and pure decisions: what exists and what should happen. No I/O, no Temporal."""
