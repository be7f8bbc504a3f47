"""The AWS activities, one per action.

They run on threads (boto3 is blocking) and are never interrupted: their steps check for cancellation themselves
(`attempt.checkpoint`), so that no effect is separated from what has to follow it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from temporalio import activity

from activities.aws import (
    account_cleanup,
    cases,
    closing,
    creation,
    fleet,
    identities,
    opt_in,
    quotas,
    region_initialization,
)
from activities.aws.session import Sessions
from activities.defined import Activities
from domain.accounts.actions.cases import OpenSupportCase, ResolveSupportCase
from domain.accounts.actions.cleaning import CleanGlobal, CleanRegion
from domain.accounts.actions.closing import CloseAccount
from domain.accounts.actions.creation import AwaitAccount, CreateAccount, TagAccount
from domain.accounts.actions.identities import (
    DeleteFleetRole,
    DeleteIdentities,
    EnsureAdminUser,
    EnsureFleetRole,
    EnsureSupportRole,
    RotateKeys,
)
from domain.accounts.actions.opt_in import EnableRegions
from domain.accounts.actions.quotas import RaiseQuotas
from domain.accounts.actions.regions import EndLaunches, InitializeRegion, ListRegions
from domain.accounts.observed import RegionOutcome
from domain.decision import Action

A = TypeVar("A", bound=Action)
R = TypeVar("R")


def _carried_out(action: type[A], by: Callable[[Sessions, A], R]) -> Callable[[AwsActivities, A], R]:
    def carry_out(self: AwsActivities, asked: A) -> R:
        return by(self.sessions, asked)

    carry_out.__annotations__ = {"asked": action, "return": action.result or type(None)}
    return activity.defn(name=action.activity, no_thread_cancel_exception=True)(carry_out)


class AwsActivities(Activities):
    """Every effect on AWS except those of federated access. One per process."""

    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions
        self._regions = region_initialization.RegionInitializer(sessions)

    create_account = _carried_out(CreateAccount, by=creation.create_account)
    await_account = _carried_out(AwaitAccount, by=creation.await_account)
    tag_account = _carried_out(TagAccount, by=creation.tag_account)
    ensure_support_role = _carried_out(EnsureSupportRole, by=identities.ensure_support_role)
    ensure_admin_user = _carried_out(EnsureAdminUser, by=identities.ensure_admin_user)
    list_regions = _carried_out(ListRegions, by=region_initialization.list_regions)
    enable_regions = _carried_out(EnableRegions, by=opt_in.enable_regions)
    raise_quotas = _carried_out(RaiseQuotas, by=quotas.raise_quotas)
    ensure_fleet_role = _carried_out(EnsureFleetRole, by=fleet.ensure_fleet_role)
    delete_fleet_role = _carried_out(DeleteFleetRole, by=fleet.delete_fleet_role)
    end_launches = _carried_out(EndLaunches, by=region_initialization.end_launches)
    open_support_case = _carried_out(OpenSupportCase, by=cases.open_support_case)
    resolve_support_case = _carried_out(ResolveSupportCase, by=cases.resolve_support_case)
    close_account = _carried_out(CloseAccount, by=closing.close_account)
    delete_identities = _carried_out(DeleteIdentities, by=identities.delete_identities)
    rotate_keys = _carried_out(RotateKeys, by=identities.rotate_keys)
    clean_region = _carried_out(CleanRegion, by=account_cleanup.clean_region)
    clean_global = _carried_out(CleanGlobal, by=account_cleanup.clean_global)

    @activity.defn(name=InitializeRegion.activity, no_thread_cancel_exception=True)
    def initialize_region(self, action: InitializeRegion) -> RegionOutcome:
        return self._regions.initialize(action)
