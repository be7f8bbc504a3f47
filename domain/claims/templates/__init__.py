"""Templates of resource claims: Jinja2 as in Poolboy, in a sandbox, with a given time.

Authors are administrators (providers and pools) and every creator of a claim (`autoDelete.when`, `autoDetach.when`).
Soft limits (`limits`) turn most excessive templates into clear errors; the rest are killed with their process
(activities/claims/evaluator.py). All times derive from a `Renderer`'s `now`. Never import this package in workflow
code, because Jinja2 compiles and imports at run time.
"""

from domain.claims.templates.errors import TemplateError
from domain.claims.templates.renderer import Json, Renderer
from domain.claims.templates.time_dependence import depends_on_time, reads_claim_or_handle, reads_what_passes_write
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
    "reads_claim_or_handle",
    "reads_what_passes_write",
]
