"""The watcher: wakes the lifecycles that a change of a watched object concerns.

    API server ──list, watch──► reflectors.py ──► projection_index.py ──► wake_queue.py ──wake──► Temporal
                                                  which lifecycles: relations.py, <area>.py

The watcher makes no decisions. Whatever fails, every lifecycle is eventually woken after its object's latest change. A
superfluous wake does no harm.
"""
