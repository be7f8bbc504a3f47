"""The AWS activities, one per action.

They run on threads (boto3 is blocking) and are never interrupted: their steps check for cancellation themselves
(`attempt.checkpoint`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, get_type_hints

from temporalio import activity

from activities.activity_class import Activities
from activities.aws import (
    account_cleanup,
    account_closing,
    account_creation,
    federated_access,
    federated_policy_validation,
    federated_revocation,
    fleet_manager_role,
    iam_identities,
    opt_in_regions,
    region_initialization,
    service_quotas,
    support_cases,
    usable_regions,
)
from activities.aws.session import Sessions
from domain.accounts.actions.region_initialization import InitializeRegion
from domain.accounts.observed import RegionOutcome
from domain.decision import Action

A = TypeVar("A", bound=Action)
R = TypeVar("R")


def _carried_out(by: Callable[[Sessions, A], R]) -> Callable[[AwsActivities, A], R]:
    def carry_out(self: AwsActivities, action: A) -> R:
        return by(self.sessions, action)

    types = get_type_hints(by)
    carry_out.__annotations__ = {"action": types["action"], "return": types["return"]}
    return activity.defn(name=types["action"].activity, no_thread_cancel_exception=True)(carry_out)


class AwsActivities(Activities):
    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions
        self._regions = region_initialization.RegionInitializer(sessions)

    create_account = _carried_out(account_creation.create_account)
    await_account = _carried_out(account_creation.await_account)
    tag_account = _carried_out(account_creation.tag_account)
    ensure_support_role = _carried_out(iam_identities.ensure_support_role)
    ensure_admin_user = _carried_out(iam_identities.ensure_admin_user)
    list_regions = _carried_out(usable_regions.list_regions)
    enable_regions = _carried_out(opt_in_regions.enable_regions)
    raise_quotas = _carried_out(service_quotas.raise_quotas)
    ensure_fleet_role = _carried_out(fleet_manager_role.ensure_fleet_role)
    delete_fleet_role = _carried_out(fleet_manager_role.delete_fleet_role)
    end_launches = _carried_out(region_initialization.end_launches)
    open_support_case = _carried_out(support_cases.open_support_case)
    resolve_support_case = _carried_out(support_cases.resolve_support_case)
    close_account = _carried_out(account_closing.close_account)
    delete_identities = _carried_out(iam_identities.delete_identities)
    rotate_keys = _carried_out(iam_identities.rotate_keys)
    clean_region = _carried_out(account_cleanup.clean_region)
    clean_global = _carried_out(account_cleanup.clean_global)
    validate_policies = _carried_out(federated_policy_validation.validate_policies)
    clear_validation = _carried_out(federated_policy_validation.clear_validation)
    identify_customer = _carried_out(federated_access.identify_customer)
    ensure_access_policy = _carried_out(federated_access.ensure_access_policy)
    ensure_access_role = _carried_out(federated_access.ensure_access_role)
    attach_access_policies = _carried_out(federated_access.attach_access_policies)
    revoke_access = _carried_out(federated_revocation.revoke_access)

    @activity.defn(name=InitializeRegion.activity, no_thread_cancel_exception=True)
    def initialize_region(self, action: InitializeRegion) -> RegionOutcome:
        return self._regions.initialize(action)
