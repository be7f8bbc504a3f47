"""Templates of resource claims: Jinja2 as in Poolboy, in a sandbox, with a given time.

Authors are administrators (providers and pools) and every creator of a claim (`autoDelete.when`, `autoDetach.when`).
Most templates that need too much time or memory exceed a soft limit (`limits`), which gives a clear error; the others
are killed with their process (activities/claims/evaluator.py). All times derive from a `Renderer`'s `now`. Never import
this package in workflow code, because Jinja2 compiles and imports at run time.
"""
