"""The names of the claims area under its default domain, as tests without servers have them."""

from __future__ import annotations

from domain.claims import binder
from domain.claims.domain_names import DomainNames
from domain.operator_domain import DEFAULT

NAMES = DomainNames(domain=DEFAULT)
BINDER = binder(DEFAULT, cluster="")
