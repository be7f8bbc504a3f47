"""Resource claims in time: a workflow for each claim, handle and pool, and the one that gives handles to claims."""

from workflows.claims.binder import ClaimBinderWorkflow
from workflows.claims.claim import ResourceClaimWorkflow
from workflows.claims.handle import ResourceHandleWorkflow
from workflows.claims.pool import ResourcePoolWorkflow

WORKFLOWS = (ClaimBinderWorkflow, ResourceClaimWorkflow, ResourceHandleWorkflow, ResourcePoolWorkflow)
