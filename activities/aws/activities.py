"""The AWS activities, by the names that `domain.accounts.actions` gives them: one per action, the action its argument.

They run on threads (boto3 is blocking), and are never interrupted by an exception: their steps look for cancellation
themselves (`attempt.checkpoint`), so that no effect is torn from what follows it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from temporalio import activity

from activities.aws import cases, cleaning, closing, creation, fleet, identities, opt_in, quotas, regions
from activities.aws.session import Sessions
from domain.accounts.actions.cases import OpenSupportCase, ResolveSupportCase, SupportCase
from domain.accounts.actions.cleaning import Cleaned, CleanGlobal, CleanRegion
from domain.accounts.actions.closing import CloseAccount, Closing
from domain.accounts.actions.creation import AwaitAccount, CreateAccount, CreatedAccount, CreateRequest, TagAccount
from domain.accounts.actions.fleet import DeleteFleetRole, EnsureFleetRole
from domain.accounts.actions.identities import (
    AdminSecret,
    DeleteIdentities,
    EnsureAdminUser,
    EnsureSupportRole,
    RotateKeys,
)
from domain.accounts.actions.launches import EndLaunches
from domain.accounts.actions.opt_in import EnableRegions, RegionStatuses
from domain.accounts.actions.quotas import QuotaStatuses, RaiseQuotas
from domain.accounts.actions.regions import InitializeRegion, ListRegions, Regions
from domain.accounts.worlds import RegionOutcome
from domain.decision import Action
from engine.kube import BlockingKube
from engine.settings import Settings

F = TypeVar("F", bound=Callable[..., object])


def _defn(action: type[Action]) -> Callable[[F], F]:
    return activity.defn(name=action.activity, no_thread_cancel_exception=True)


class AwsActivities:
    """Every effect on AWS. One instance per worker process."""

    def __init__(self, sessions: Sessions, kube: BlockingKube, settings: Settings) -> None:
        self._sessions = sessions
        self._kube = kube
        self._settings = settings
        self._regions = regions.RegionInitializer(sessions)

    def all(self) -> list[Callable[..., object]]:
        """What a worker registers."""
        return [
            self.create_account,
            self.await_account,
            self.tag_account,
            self.ensure_support_role,
            self.ensure_admin_user,
            self.list_regions,
            self.initialize_region,
            self.enable_regions,
            self.raise_quotas,
            self.end_launches,
            self.ensure_fleet_role,
            self.delete_fleet_role,
            self.open_support_case,
            self.resolve_support_case,
            self.close_account,
            self.delete_identities,
            self.rotate_keys,
            self.clean_region,
            self.clean_global,
        ]

    @_defn(CreateAccount)
    def create_account(self, action: CreateAccount) -> CreateRequest:
        """See `creation.create_account`."""
        return creation.create_account(self._sessions, action)

    @_defn(AwaitAccount)
    def await_account(self, action: AwaitAccount) -> CreatedAccount:
        """See `creation.await_account`."""
        return creation.await_account(self._sessions, action)

    @_defn(TagAccount)
    def tag_account(self, action: TagAccount) -> None:
        """See `creation.tag_account`."""
        creation.tag_account(self._sessions, action)

    @_defn(EnsureSupportRole)
    def ensure_support_role(self, action: EnsureSupportRole) -> None:
        """See `identities.ensure_support_role`."""
        identities.ensure_support_role(self._sessions, action)

    @_defn(EnsureAdminUser)
    def ensure_admin_user(self, action: EnsureAdminUser) -> AdminSecret:
        """See `identities.ensure_admin_user`."""
        return identities.ensure_admin_user(self._sessions, self._kube, action)

    @_defn(ListRegions)
    def list_regions(self, action: ListRegions) -> Regions:
        """See `regions.list_regions`."""
        return regions.list_regions(self._sessions, action)

    @_defn(InitializeRegion)
    def initialize_region(self, action: InitializeRegion) -> RegionOutcome:
        """See `regions.RegionInitializer`."""
        return self._regions.initialize(action)

    @_defn(EnableRegions)
    def enable_regions(self, action: EnableRegions) -> RegionStatuses:
        """See `opt_in.enable_regions`."""
        return opt_in.enable_regions(self._sessions, action, self._settings.accounts_poll)

    @_defn(RaiseQuotas)
    def raise_quotas(self, action: RaiseQuotas) -> QuotaStatuses:
        """See `quotas.raise_quotas`."""
        return quotas.raise_quotas(self._sessions, action, self._settings.accounts_poll)

    @_defn(EnsureFleetRole)
    def ensure_fleet_role(self, action: EnsureFleetRole) -> None:
        """See `fleet.ensure_fleet_role`."""
        fleet.ensure_fleet_role(self._sessions, action)

    @_defn(DeleteFleetRole)
    def delete_fleet_role(self, action: DeleteFleetRole) -> None:
        """See `fleet.delete_fleet_role`."""
        fleet.delete_fleet_role(self._sessions, action)

    @_defn(EndLaunches)
    def end_launches(self, action: EndLaunches) -> None:
        """See `regions.end_launches`."""
        regions.end_launches(self._sessions, action)

    @_defn(OpenSupportCase)
    def open_support_case(self, action: OpenSupportCase) -> SupportCase:
        """See `cases.open_support_case`."""
        return cases.open_support_case(self._sessions, action)

    @_defn(ResolveSupportCase)
    def resolve_support_case(self, action: ResolveSupportCase) -> None:
        """See `cases.resolve_support_case`."""
        cases.resolve_support_case(self._sessions, action)

    @_defn(CloseAccount)
    def close_account(self, action: CloseAccount) -> Closing:
        """See `closing.close_account`."""
        return closing.close_account(self._sessions, action)

    @_defn(DeleteIdentities)
    def delete_identities(self, action: DeleteIdentities) -> None:
        """See `identities.delete_identities`."""
        identities.delete_identities(self._sessions, action)

    @_defn(RotateKeys)
    def rotate_keys(self, action: RotateKeys) -> None:
        """See `identities.rotate_keys`."""
        identities.rotate_keys(self._sessions, self._kube, action)

    @_defn(CleanRegion)
    def clean_region(self, action: CleanRegion) -> Cleaned:
        """See `cleaning.clean_region`."""
        return cleaning.clean_region(self._sessions, action)

    @_defn(CleanGlobal)
    def clean_global(self, action: CleanGlobal) -> Cleaned:
        """See `cleaning.clean_global`."""
        return cleaning.clean_global(self._sessions, action)
