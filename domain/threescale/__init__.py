"""3scale: the eleven kinds of capabilities.3scale.net, as the 3scale operator has them, kept in step with 3scale.

| file | says |
|---|---|
| `resources/` | the custom resources, field for field |
| `defaults.py` | what is written into a spec that leaves it open |
| `validation.py` | what is wrong with a spec, in the words that clients know |
| `normalize.py` | when what is wanted and what 3scale says mean the same |
| `conditions.py` | how an object stands, as clients read it |
| `mapping_rules.py` | the fewest calls that bring a list of mapping rules into another order |
| `found.py`, `calls.py`, `apply_response.py` | what 3scale has, calls of its API, and what is known after each |
| `product_sync.py`, `backend_sync.py` | which calls bring a product or a backend to what is wanted |
| `metrics.py`, `application_plans.py`, `gateway.py` | the same for metrics and rules, for plans, for the gateway |
| `renames.py` | values that must be unique, changed one at a time |
| `product.py`, `backend.py` | what is to be done for such an object now |
| `developer_account.py`, `developer_user.py`, `application.py`, `application_auth.py` | the same for who uses APIs |
| `active_doc.py`, `policy.py`, `promotion.py` | the same for documents, policies and promotions |
| `production.py` | a product that is promoted by itself |
| `tenant.py`, `tenant_sync.py` | the same for tenants, which a master makes |
| `open_api_document.py`, `open_api_generated.py`, `open_api.py` | a document, the product and backend of it, the same |
| `texts.py`, `source_labels.py` | where such a document comes from, and how its Secret is labelled |
| `reconciliation.py` | `decide(world, now)` for an object of any kind |
| `observed.py`, `actions.py`, `remote_object.py` | what decisions see, say and ask for; objects without parts |
| `application_sync.py` | which calls bring an application to what is wanted |
| `developer_credentials.py` | where a user's password is, and what an address looks like |
| `providers.py`, `references.py`, `orphans.py` | which tenant, which referents, and when to look for them again |
| `relations.py`, `wakes.py`, `belonging.py` | what wakes whom, by which names, and what goes with a Tenant |
| `digests.py`, `notes.py` | what an object remembers of 3scale, and notes of others |
| `notices.py` | what Kubernetes Events tell of an object |
| `passes.py` | the actions of its workflows: a pass over an object, the sweep over all tenants |
| `drift.py` | what tenants' lists show that the objects do not say |
"""

from domain.identity import Key, Kind
from domain.threescale.constants import (
    ACCOUNT_FINALIZER,
    ACTIVE_DOC_FINALIZER,
    APPLICATION_FINALIZER,
    BACKEND_FINALIZER,
    GROUP,
    OPEN_API_FINALIZER,
    POLICY_FINALIZER,
    PRODUCT_FINALIZER,
    TENANT_FINALIZER,
    TENANT_VERSION,
    USER_FINALIZER,
    VERSION,
)

_AREA = "threescale"


def _kind(name: str, finalizer: str = "", version: str = VERSION) -> Kind:
    return Kind(
        name=name,
        group=GROUP,
        version=version,
        plural=f"{name.lower()}s",
        area=_AREA,
        finalizer=finalizer,
    )


PRODUCT = _kind("Product", PRODUCT_FINALIZER)
BACKEND = _kind("Backend", BACKEND_FINALIZER)
ACTIVE_DOC = _kind("ActiveDoc", ACTIVE_DOC_FINALIZER)
OPEN_API = _kind("OpenAPI", OPEN_API_FINALIZER)
DEVELOPER_ACCOUNT = _kind("DeveloperAccount", ACCOUNT_FINALIZER)
DEVELOPER_USER = _kind("DeveloperUser", USER_FINALIZER)
APPLICATION = _kind("Application", APPLICATION_FINALIZER)
APPLICATION_AUTH = _kind("ApplicationAuth")
CUSTOM_POLICY_DEFINITION = _kind("CustomPolicyDefinition", POLICY_FINALIZER)
PROXY_CONFIG_PROMOTE = _kind("ProxyConfigPromote")
TENANT = _kind("Tenant", TENANT_FINALIZER, TENANT_VERSION)

CUSTOM_KINDS = (
    PRODUCT,
    BACKEND,
    ACTIVE_DOC,
    OPEN_API,
    DEVELOPER_ACCOUNT,
    DEVELOPER_USER,
    APPLICATION,
    APPLICATION_AUTH,
    CUSTOM_POLICY_DEFINITION,
    PROXY_CONFIG_PROMOTE,
    TENANT,
)
# All tenants together: the periodic comparison of their lists with the objects. No custom resource stands behind it.
THREESCALE_TENANTS = Kind(name="ThreescaleTenants", group="", version="", plural="", area=_AREA)
THE_TENANTS = Key(kind=THREESCALE_TENANTS.name, namespace="", name="all", uid="0")

STANDING = (THE_TENANTS,)

KINDS = (*CUSTOM_KINDS, THREESCALE_TENANTS)
