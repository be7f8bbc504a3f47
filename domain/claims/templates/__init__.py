"""Templates of resource claims: Jinja2 as Poolboy's users know it, in a sandbox, by a clock that is given.

Everybody writes templates here: administrators in providers and pools, and anybody who may create a claim, in
`autoDelete.when` and `autoDetach.when`. All of them render in one sandbox (`environment`), with one set of names
(`moments`, `filters`), typing and `omit` (`renderer`), on views of the objects (`views`) that cannot be changed. Soft
limits (`limits`) turn what grows without bound into an error that says so; what slips through them is ended by the
process that evaluates (activities/claims/evaluator.py).

Pure: no clock, file or network is read; `now` and all that depends on it come from the instant a `Renderer` is made
with. Never imported by workflow code: Jinja2 compiles and imports as it goes.
"""

from domain.claims.templates.cadence import depends_on_time, reads_what_passes_write
from domain.claims.templates.errors import TemplateError
from domain.claims.templates.renderer import Json, Renderer
from domain.claims.templates.views import ClaimView, HandleView, PoolView, ProviderView

__all__ = [
    "ClaimView",
    "HandleView",
    "Json",
    "PoolView",
    "ProviderView",
    "Renderer",
    "TemplateError",
    "depends_on_time",
    "reads_what_passes_write",
]
