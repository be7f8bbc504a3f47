"""Everything that starts or wakes workflows, and the codec server."""
