"""3scale's custom resources, with all fields that the 3scale operator defines.

Reading is tolerant: prices and addresses stay texts. An absent field is None if 3scale's own value or default applies.
"""

from domain.threescale.resources.applications import Application, ApplicationAuth
from domain.threescale.resources.backend import Backend, BackendSpec
from domain.threescale.resources.developers import DeveloperAccount, DeveloperUser
from domain.threescale.resources.documents import ActiveDoc, OpenApi
from domain.threescale.resources.gateway import CustomPolicyDefinition, ProxyConfigPromote
from domain.threescale.resources.product import ApplicationPlan, Limit, PricingRule, Product, ProductSpec
from domain.threescale.resources.shared import MappingRule, Metric, MetricReference, Policy, ProductMethod
from domain.threescale.resources.tenant import Tenant

__all__ = [
    "ActiveDoc",
    "Application",
    "ApplicationAuth",
    "ApplicationPlan",
    "Backend",
    "BackendSpec",
    "CustomPolicyDefinition",
    "DeveloperAccount",
    "DeveloperUser",
    "Limit",
    "MappingRule",
    "Metric",
    "MetricReference",
    "OpenApi",
    "Policy",
    "PricingRule",
    "Product",
    "ProductMethod",
    "ProductSpec",
    "ProxyConfigPromote",
    "Tenant",
]
