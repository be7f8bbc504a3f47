"""The lifecycles of 3scale objects. What should happen is decided in `domain/threescale/`, within a pass.

    New ─► Syncing ─► Synced ─new spec, other referents, drift─► Syncing
      any ─► Orphan: something it refers to is missing; looked for again after 5 s, doubling to ten minutes
      any ─► Invalid, Failed: told in the status; tried again after 5 s, doubling to ten minutes
      any ─deletion─► Deleting ─► (end)

These are the phases of every kind. A wake makes the next pass at once, and drops what 3scale has refused: its reason
may have gone.
"""

from __future__ import annotations

from typing import ClassVar

from domain.threescale.passes import RETRYABLE, PassObject, SweepTenants, ThreescaleWorld
from workflows.lifecycle import lifecycle
from workflows.passes import Passes


class _Object(Passes[ThreescaleWorld]):
    retryable_phases = RETRYABLE


@lifecycle("Product", world=ThreescaleWorld, observe=PassObject)
class ProductWorkflow(_Object):
    """A product of 3scale, with metrics, mapping rules, plans and gateway.

    It waits for its backends and for the Secrets that it draws on; a change of a backend makes it deploy again.
    """


@lifecycle("Backend", world=ThreescaleWorld, observe=PassObject)
class BackendWorkflow(_Object):
    """A backend of 3scale. It waits for its tenant only; its deletion waits until no Product uses it."""


@lifecycle("CustomPolicyDefinition", world=ThreescaleWorld, observe=PassObject)
class CustomPolicyDefinitionWorkflow(_Object):
    """A policy of the tenant's own. 3scale refuses its deletion as long as a product's policy chain has it."""


@lifecycle("OpenAPI", world=ThreescaleWorld, observe=PassObject)
class OpenApiWorkflow(_Object):
    """An OpenAPI document that becomes a Product and a Backend.

    It waits for the document and for the Product; a document at an address is fetched again every five minutes.
    """


@lifecycle("ActiveDoc", world=ThreescaleWorld, observe=PassObject)
class ActiveDocWorkflow(_Object):
    """A document for readers of an API. It waits for its product, and for the Secret with the document."""


@lifecycle("ProxyConfigPromote", world=ThreescaleWorld, observe=PassObject)
class ProxyConfigPromoteWorkflow(_Object):
    """The promotion of a product's gateway configuration. It waits for its product, and acts once."""


@lifecycle("Tenant", world=ThreescaleWorld, observe=PassObject)
class TenantWorkflow(_Object):
    """A tenant of a 3scale installation, made by its master.

    It waits for the master's token, the first admin's password, and, if the tenant's own token was lost, for a person.
    """


@lifecycle("DeveloperAccount", world=ThreescaleWorld, observe=PassObject)
class DeveloperAccountWorkflow(_Object):
    """An organisation that uses APIs. It waits for a DeveloperUser that is admin, with which 3scale creates it."""


@lifecycle("DeveloperUser", world=ThreescaleWorld, observe=PassObject)
class DeveloperUserWorkflow(_Object):
    """A person of an organisation. It waits for its account, and goes with it."""


@lifecycle("Application", world=ThreescaleWorld, observe=PassObject)
class ApplicationWorkflow(_Object):
    """An account's use of a product. It waits for account, product, plan and credentials, and goes with its account."""


@lifecycle("ApplicationAuth", world=ThreescaleWorld, observe=PassObject)
class ApplicationAuthWorkflow(_Object):
    """The credentials of an application. It waits for the application and its Secret, and acts once."""


@lifecycle("ThreescaleTenants", world=ThreescaleWorld, observe=SweepTenants)
class ThreescaleTenantsWorkflow(Passes[ThreescaleWorld]):
    """The sweep that compares the lists of all tenants with the objects, every hour while there are any.

        woken by a new object --> wait for the first sweep --> sweep (one list of each kind a tenant) --> wait

    An object that differs is woken by an annotation that the sweep writes.
    """

    has_object: ClassVar[bool] = False
