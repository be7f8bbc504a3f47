from __future__ import annotations

GROUP = "capabilities.3scale.net"
VERSION = "v1beta1"
TENANT_VERSION = "v1alpha1"

PRODUCT_FINALIZER = f"product.{GROUP}/finalizer"
BACKEND_FINALIZER = f"backend.{GROUP}/finalizer"
ACCOUNT_FINALIZER = f"developeraccount.{GROUP}/finalizer"
USER_FINALIZER = f"developeruser.{GROUP}/finalizer"
APPLICATION_FINALIZER = f"application.{GROUP}/finalizer"
TENANT_FINALIZER = f"tenant.{GROUP}/finalizer"
# The replaced operator sets no finalizer on these kinds: their entries stay in 3scale, or garbage collection deletes
# the generated objects.
ACTIVE_DOC_FINALIZER = "perdure.dev/activedoc"
OPEN_API_FINALIZER = "perdure.dev/openapi"
POLICY_FINALIZER = "perdure.dev/custompolicydefinition"

HITS = "hits"
APICAST = "apicast"
BUILT_IN = "builtin"
