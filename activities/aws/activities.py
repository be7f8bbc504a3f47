"""The AWS activities, one per action.

They run on threads (boto3 is blocking) and are never interrupted: their steps check for cancellation themselves
(`attempt.checkpoint`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from temporalio import activity

from activities.activity_class import Activities
from activities.aws import (
    account_cleanup,
    account_closing,
    account_creation,
    fleet_manager_role,
    iam_identities,
    opt_in_regions,
    region_initialization,
    service_quotas,
    support_cases,
)
from activities.aws.session import Sessions
from domain.accounts.actions.account_cleanup import CleanGlobal, CleanRegion
from domain.accounts.actions.account_closing import CloseAccount
from domain.accounts.actions.account_creation import AwaitAccount, CreateAccount, TagAccount
from domain.accounts.actions.iam_identities import (
    DeleteFleetRole,
    DeleteIdentities,
    EnsureAdminUser,
    EnsureFleetRole,
    EnsureSupportRole,
    RotateKeys,
)
from domain.accounts.actions.opt_in_regions import EnableRegions
from domain.accounts.actions.region_initialization import EndLaunches, InitializeRegion, ListRegions
from domain.accounts.actions.service_quotas import RaiseQuotas
from domain.accounts.actions.support_cases import OpenSupportCase, ResolveSupportCase
from domain.accounts.observed import RegionOutcome
from domain.decision import Action

A = TypeVar("A", bound=Action)
R = TypeVar("R")


def _carried_out(action: type[A], by: Callable[[Sessions, A], R]) -> Callable[[AwsActivities, A], R]:
    def carry_out(self: AwsActivities, action: A) -> R:
        return by(self.sessions, action)

    carry_out.__annotations__ = {"action": action, "return": action.result or type(None)}
    return activity.defn(name=action.activity, no_thread_cancel_exception=True)(carry_out)


class AwsActivities(Activities):
    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions
        self._regions = region_initialization.RegionInitializer(sessions)

    create_account = _carried_out(CreateAccount, by=account_creation.create_account)
    await_account = _carried_out(AwaitAccount, by=account_creation.await_account)
    tag_account = _carried_out(TagAccount, by=account_creation.tag_account)
    ensure_support_role = _carried_out(EnsureSupportRole, by=iam_identities.ensure_support_role)
    ensure_admin_user = _carried_out(EnsureAdminUser, by=iam_identities.ensure_admin_user)
    list_regions = _carried_out(ListRegions, by=region_initialization.list_regions)
    enable_regions = _carried_out(EnableRegions, by=opt_in_regions.enable_regions)
    raise_quotas = _carried_out(RaiseQuotas, by=service_quotas.raise_quotas)
    ensure_fleet_role = _carried_out(EnsureFleetRole, by=fleet_manager_role.ensure_fleet_role)
    delete_fleet_role = _carried_out(DeleteFleetRole, by=fleet_manager_role.delete_fleet_role)
    end_launches = _carried_out(EndLaunches, by=region_initialization.end_launches)
    open_support_case = _carried_out(OpenSupportCase, by=support_cases.open_support_case)
    resolve_support_case = _carried_out(ResolveSupportCase, by=support_cases.resolve_support_case)
    close_account = _carried_out(CloseAccount, by=account_closing.close_account)
    delete_identities = _carried_out(DeleteIdentities, by=iam_identities.delete_identities)
    rotate_keys = _carried_out(RotateKeys, by=iam_identities.rotate_keys)
    clean_region = _carried_out(CleanRegion, by=account_cleanup.clean_region)
    clean_global = _carried_out(CleanGlobal, by=account_cleanup.clean_global)

    @activity.defn(name=InitializeRegion.activity, no_thread_cancel_exception=True)
    def initialize_region(self, action: InitializeRegion) -> RegionOutcome:
        return self._regions.initialize(action)
