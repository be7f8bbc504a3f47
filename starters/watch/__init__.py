"""The watcher: turns every change of a watched object into a wake of the lifecycles it concerns.

    API server ──list, watch──► reflectors.py ──► projection_index.py ──► wake_queue.py ──wake──► Temporal
                                                  which lifecycles: relations.py, <area>.py

It makes no decisions. Whatever fails, every lifecycle is eventually woken after its object's last change; a superfluous
wake does no harm.
"""
