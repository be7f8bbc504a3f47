"""The AWS activities, by the names that `domain.accounts.actions` gives them: one per action, the action its argument.

They run on threads (boto3 is blocking), and are never interrupted by an exception: their steps look for cancellation
themselves (`attempt.checkpoint`), so that no effect is torn from what follows it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from temporalio import activity

from activities.aws import cases, cleaning, creation, identities, regions
from activities.aws.session import Sessions
from domain.accounts import actions
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
            self.open_support_case,
            self.delete_identities,
            self.rotate_keys,
            self.clean_region,
            self.clean_global,
        ]

    @_defn(actions.CreateAccount)
    def create_account(self, action: actions.CreateAccount) -> actions.CreateRequest:
        """See `creation.create_account`."""
        return creation.create_account(self._sessions, action)

    @_defn(actions.AwaitAccount)
    def await_account(self, action: actions.AwaitAccount) -> actions.CreatedAccount:
        """See `creation.await_account`."""
        return creation.await_account(self._sessions, action)

    @_defn(actions.TagAccount)
    def tag_account(self, action: actions.TagAccount) -> None:
        """See `creation.tag_account`."""
        creation.tag_account(self._sessions, action)

    @_defn(actions.EnsureSupportRole)
    def ensure_support_role(self, action: actions.EnsureSupportRole) -> None:
        """See `identities.ensure_support_role`."""
        identities.ensure_support_role(self._sessions, action)

    @_defn(actions.EnsureAdminUser)
    def ensure_admin_user(self, action: actions.EnsureAdminUser) -> actions.AdminSecret:
        """See `identities.ensure_admin_user`."""
        return identities.ensure_admin_user(self._sessions, self._kube, action)

    @_defn(actions.ListRegions)
    def list_regions(self, action: actions.ListRegions) -> actions.Regions:
        """See `regions.list_regions`."""
        return regions.list_regions(self._sessions, action)

    @_defn(actions.InitializeRegion)
    def initialize_region(self, action: actions.InitializeRegion) -> RegionOutcome:
        """See `regions.RegionInitializer`."""
        return self._regions.initialize(action)

    @_defn(actions.OpenSupportCase)
    def open_support_case(self, action: actions.OpenSupportCase) -> actions.SupportCase:
        """See `cases.open_support_case`."""
        return cases.open_support_case(self._sessions, action)

    @_defn(actions.DeleteIdentities)
    def delete_identities(self, action: actions.DeleteIdentities) -> None:
        """See `identities.delete_identities`."""
        identities.delete_identities(self._sessions, action)

    @_defn(actions.RotateKeys)
    def rotate_keys(self, action: actions.RotateKeys) -> None:
        """See `identities.rotate_keys`."""
        identities.rotate_keys(self._sessions, self._kube, action)

    @_defn(actions.CleanRegion)
    def clean_region(self, action: actions.CleanRegion) -> actions.Cleaned:
        """See `cleaning.clean_region`."""
        return cleaning.clean_region(self._sessions, action)

    @_defn(actions.CleanGlobal)
    def clean_global(self, action: actions.CleanGlobal) -> actions.Cleaned:
        """See `cleaning.clean_global`."""
        return cleaning.clean_global(self._sessions, action)
