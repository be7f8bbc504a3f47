"""The eleven kinds of capabilities.3scale.net, as the 3scale operator defines them.

`reconciliation.py` is the entry point. Each kind has a module with its lifecycle and its API calls; the calls
of a Product are in `product_sync.py`. `observed.py` defines the input of decisions, `remote_state.py` the state of
3scale.
"""

from domain.identity import Key, Kind

_AREA = "threescale"
_GROUP = "capabilities.3scale.net"


def _kind(name: str, finalizer: str = "", version: str = "v1beta1", reporter: str = "") -> Kind:
    return Kind(
        name=name,
        group=_GROUP,
        version=version,
        plural=f"{name.lower()}s",
        area=_AREA,
        finalizer=finalizer,
        reporter=reporter,
    )


PRODUCT = _kind("Product", f"product.{_GROUP}/finalizer")
BACKEND = _kind("Backend", f"backend.{_GROUP}/finalizer")
DEVELOPER_ACCOUNT = _kind("DeveloperAccount", f"developeraccount.{_GROUP}/finalizer")
DEVELOPER_USER = _kind("DeveloperUser", f"developeruser.{_GROUP}/finalizer")
APPLICATION = _kind("Application", f"application.{_GROUP}/finalizer")
TENANT = _kind("Tenant", f"tenant.{_GROUP}/finalizer", version="v1alpha1")
# Finalizers of Perdure. The replaced operator sets none on these kinds: it leaves their entries in 3scale, and leaves
# the generated objects to garbage collection.
ACTIVE_DOC = _kind("ActiveDoc", "perdure.dev/activedoc")
OPEN_API = _kind("OpenAPI", "perdure.dev/openapi")
CUSTOM_POLICY_DEFINITION = _kind("CustomPolicyDefinition", "perdure.dev/custompolicydefinition")
# As with the replaced operator, the Events of an ApplicationAuth name the component Application.
APPLICATION_AUTH = _kind("ApplicationAuth", reporter=APPLICATION.name)
PROXY_CONFIG_PROMOTE = _kind("ProxyConfigPromote")

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
# The periodic comparison of all tenants' lists in 3scale with the objects. It has no custom resource.
THREESCALE_TENANTS = Kind(name="ThreescaleTenants", group="", version="", plural="", area=_AREA)
THE_TENANTS = Key(kind=THREESCALE_TENANTS.name, namespace="", name="all", uid="0")

STANDING = (THE_TENANTS,)

KINDS = (*CUSTOM_KINDS, THREESCALE_TENANTS)
