"""The OpenStack activities, by the names that `domain.loadbalancers.actions` gives them: one per action.

They run on threads, one request after another, and are never interrupted by an exception: no effect is torn from its
answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from temporalio import activity

from activities.openstack import steps
from activities.openstack.births import birth
from activities.openstack.projects import Projects
from domain.decision import Action
from domain.loadbalancers import actions
from domain.loadbalancers.cloud.changes import Brought
from engine.errors import Absent
from engine.kube import BlockingKube
from engine.settings import Settings

F = TypeVar("F", bound=Callable[..., object])


def _defn(action: type[Action]) -> Callable[[F], F]:
    return activity.defn(name=action.activity, no_thread_cancel_exception=True)


class OpenStackActivities:
    """Every effect on OpenStack. One instance per worker process."""

    def __init__(self, projects: Projects, kube: BlockingKube, settings: Settings) -> None:
        self._projects = projects
        self._kube = kube
        self._settings = settings

    def all(self) -> list[Callable[..., object]]:
        """What a worker registers."""
        return [
            self.create_security_group,
            self.change_rules,
            self.create_port,
            self.update_port,
            self.create_floating_ip,
            self.update_floating_ip,
            self.create_server_group,
            self.create_server,
            self.delete_security_group,
            self.delete_port,
            self.delete_floating_ip,
            self.delete_server_group,
            self.delete_server,
            self.await_server,
        ]

    @_defn(actions.CreateSecurityGroup)
    def create_security_group(self, action: actions.CreateSecurityGroup) -> Brought:
        """A security group."""
        return self._carry_out(action)

    @_defn(actions.ChangeRules)
    def change_rules(self, action: actions.ChangeRules) -> Brought:
        """Rules of a security group."""
        return self._carry_out(action)

    @_defn(actions.CreatePort)
    def create_port(self, action: actions.CreatePort) -> Brought:
        """A port."""
        return self._carry_out(action)

    @_defn(actions.UpdatePort)
    def update_port(self, action: actions.UpdatePort) -> Brought:
        """What a port may."""
        return self._carry_out(action)

    @_defn(actions.CreateFloatingIp)
    def create_floating_ip(self, action: actions.CreateFloatingIp) -> Brought:
        """A floating IP."""
        return self._carry_out(action)

    @_defn(actions.UpdateFloatingIp)
    def update_floating_ip(self, action: actions.UpdateFloatingIp) -> Brought:
        """Where a floating IP leads."""
        return self._carry_out(action)

    @_defn(actions.CreateServerGroup)
    def create_server_group(self, action: actions.CreateServerGroup) -> Brought:
        """A server group."""
        return self._carry_out(action)

    @_defn(actions.CreateServer)
    def create_server(self, action: actions.CreateServer) -> Brought:
        """See `births` and `steps`."""
        project = self._projects.project(action.project)
        return steps.carry_out(project, action.step, lambda: birth(self._kube, self._settings, action))

    @_defn(actions.DeleteSecurityGroup)
    def delete_security_group(self, action: actions.DeleteSecurityGroup) -> Brought:
        """A security group goes."""
        return self._carry_out(action)

    @_defn(actions.DeletePort)
    def delete_port(self, action: actions.DeletePort) -> Brought:
        """A port goes."""
        return self._carry_out(action)

    @_defn(actions.DeleteFloatingIp)
    def delete_floating_ip(self, action: actions.DeleteFloatingIp) -> Brought:
        """A floating IP goes."""
        return self._carry_out(action)

    @_defn(actions.DeleteServerGroup)
    def delete_server_group(self, action: actions.DeleteServerGroup) -> Brought:
        """A server group goes."""
        return self._carry_out(action)

    @_defn(actions.DeleteServer)
    def delete_server(self, action: actions.DeleteServer) -> Brought:
        """A server goes; done when it is gone."""
        return self._carry_out(action)

    @_defn(actions.AwaitServer)
    def await_server(self, action: actions.AwaitServer) -> Brought:
        """See `steps.await_server`."""
        server = steps.await_server(self._projects.project(action.project), action.server_id)
        if server is None:
            raise Absent(f"server {action.server_id} does not exist any more", code="ServerGone")
        return Brought(server=server)

    def _carry_out(self, action: actions.StepAction) -> Brought:
        return steps.carry_out(self._projects.project(action.project), action.step)
