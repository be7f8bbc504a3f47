"""Lifecycles of 3scale objects. `domain/threescale/` decides, within a pass. The phases of every kind:

    New ─► Syncing ─► Synced ─new spec, other referents, drift─► Syncing
      any ─► Orphan: a referenced object is missing; observed again after 5 s, doubling to ten minutes
      any ─► Invalid: waits for a change    any ─► Failed: tried again after 5 s, doubling to ten minutes
      any ─deletion─► Deleting ─► (end)

A wake starts the next pass at once and drops 3scale's earlier refusals, because their reasons may be gone.
"""

from __future__ import annotations

from typing import ClassVar

from domain.threescale.passes import RETRYABLE, PassObject, SweepTenants, ThreescaleWorld
from workflows.lifecycle_declaration import lifecycle
from workflows.passes import Passes


class _Object(Passes[ThreescaleWorld]):
    retryable_phases = RETRYABLE


@lifecycle("Product", world=ThreescaleWorld, observe=PassObject)
class ProductWorkflow(_Object):
    """A product with metrics, mapping rules, plans and gateway.

    It waits for its backends and Secrets. If a backend changes, the product is deployed again.
    """


@lifecycle("Backend", world=ThreescaleWorld, observe=PassObject)
class BackendWorkflow(_Object):
    """A backend. It waits only for its tenant. Its deletion waits until no Product uses the backend."""


@lifecycle("CustomPolicyDefinition", world=ThreescaleWorld, observe=PassObject)
class CustomPolicyDefinitionWorkflow(_Object):
    """A custom policy, whose deletion 3scale refuses while a product's policy chain uses it."""


@lifecycle("OpenAPI", world=ThreescaleWorld, observe=PassObject)
class OpenApiWorkflow(_Object):
    """An OpenAPI document that becomes a Product and a Backend.

    It waits for the document and for the Product. A document at a URL is fetched every five minutes.
    """


@lifecycle("ActiveDoc", world=ThreescaleWorld, observe=PassObject)
class ActiveDocWorkflow(_Object):
    """A product's documentation. It waits for its product, and for the Secret with the document."""


@lifecycle("ProxyConfigPromote", world=ThreescaleWorld, observe=PassObject)
class ProxyConfigPromoteWorkflow(_Object):
    """A promotion of a product's configuration. It waits for its product, and promotes once."""


@lifecycle("Tenant", world=ThreescaleWorld, observe=PassObject)
class TenantWorkflow(_Object):
    """A tenant that the master of a 3scale installation creates.

    It waits for the master's token and the first admin's password. If the tenant's own token is lost, it waits until a
    person supplies a new token.
    """


@lifecycle("DeveloperAccount", world=ThreescaleWorld, observe=PassObject)
class DeveloperAccountWorkflow(_Object):
    """An organisation that uses APIs. It waits for an admin DeveloperUser, because 3scale creates both together."""


@lifecycle("DeveloperUser", world=ThreescaleWorld, observe=PassObject)
class DeveloperUserWorkflow(_Object):
    """A person in an organisation. It waits for its account, and is deleted with its account."""


@lifecycle("Application", world=ThreescaleWorld, observe=PassObject)
class ApplicationWorkflow(_Object):
    """An application. It waits for account, product, plan and credentials, and is deleted with its account."""


@lifecycle("ApplicationAuth", world=ThreescaleWorld, observe=PassObject)
class ApplicationAuthWorkflow(_Object):
    """An application's keys. It waits for the application and the Secret, and sets the keys once."""


@lifecycle("ThreescaleTenants", world=ThreescaleWorld, observe=SweepTenants)
class ThreescaleTenantsWorkflow(Passes[ThreescaleWorld]):
    """Compares what 3scale lists in each tenant with the custom resources, every hour while there are such resources.

        woken by a new object --> wait for the first sweep --> sweep (per tenant one list of each kind) --> wait

    The sweep annotates each object that differs, and the annotation wakes the object.
    """

    has_object: ClassVar[bool] = False
