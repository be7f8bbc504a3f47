"""The eleven 3scale kinds of capabilities.3scale.net, as the 3scale operator defines them.

`reconciliation.py` is the entry point. Each kind has a module with its lifecycle (`product.py`). Some kinds have a
second module with their API calls (`product_sync.py`). `observed.py` defines the input of decisions, `remote_state.py`
the state of 3scale.
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


def _kind(name: str, finalizer: str = "", version: str = VERSION, reporter: str = "") -> Kind:
    return Kind(
        name=name,
        group=GROUP,
        version=version,
        plural=f"{name.lower()}s",
        area=_AREA,
        finalizer=finalizer,
        reporter=reporter,
    )


PRODUCT = _kind("Product", PRODUCT_FINALIZER)
BACKEND = _kind("Backend", BACKEND_FINALIZER)
ACTIVE_DOC = _kind("ActiveDoc", ACTIVE_DOC_FINALIZER)
OPEN_API = _kind("OpenAPI", OPEN_API_FINALIZER)
DEVELOPER_ACCOUNT = _kind("DeveloperAccount", ACCOUNT_FINALIZER)
DEVELOPER_USER = _kind("DeveloperUser", USER_FINALIZER)
APPLICATION = _kind("Application", APPLICATION_FINALIZER)
# As with the replaced operator, the Events of an ApplicationAuth name the component Application.
APPLICATION_AUTH = _kind("ApplicationAuth", reporter=APPLICATION.name)
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
# The periodic comparison of all tenants' lists with the objects. It has no custom resource.
THREESCALE_TENANTS = Kind(name="ThreescaleTenants", group="", version="", plural="", area=_AREA)
THE_TENANTS = Key(kind=THREESCALE_TENANTS.name, namespace="", name="all", uid="0")

STANDING = (THE_TENANTS,)

KINDS = (*CUSTOM_KINDS, THREESCALE_TENANTS)
