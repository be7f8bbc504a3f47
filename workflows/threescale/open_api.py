"""An OpenAPI's workflow: a document becomes a Product and a Backend. The phases are drawn in `lifecycle.py`.

It waits for the document and for the Product; a document at an address is fetched again every five minutes.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.threescale.passes import ThreescaleWorld
    from workflows.lifecycle import lifecycle
    from workflows.threescale.lifecycle import Lifecycle


@lifecycle("OpenAPI", ThreescaleWorld)
class OpenApiWorkflow(Lifecycle):
    """The lifecycle of one OpenAPI."""
