"""AWS account pools in time: one workflow per Account, AccountClaim and AccountPool, and one for the organization."""

from workflows.accounts.account import AccountWorkflow
from workflows.accounts.claim import AccountClaimWorkflow
from workflows.accounts.organization import OrganizationWorkflow
from workflows.accounts.pool import AccountPoolWorkflow

WORKFLOWS = (AccountPoolWorkflow, AccountWorkflow, AccountClaimWorkflow, OrganizationWorkflow)
