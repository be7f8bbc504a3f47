"""Resource claims in time: a workflow for each claim, handle and pool, and the one that gives handles to claims."""
