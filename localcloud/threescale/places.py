"""Tenants' addresses. Each tenant has its own port, because all tenants are at 127.0.0.1.

A restart keeps each port that is still free.
"""

from __future__ import annotations

import logging
import random

from localcloud.state import is_free
from localcloud.threescale import tables
from localcloud.threescale.store import Record, Store

log = logging.getLogger(__name__)

# Outside the local deployment's range for services, so that neither uses a port that the other has stored.
PORTS = range(14_000, 20_000)


def settle(store: Store, tenant: Record, host: str, wanted: int = 0) -> Record:
    port = wanted or tenant.number("port")
    if not wanted and (not port or not is_free(port)):
        port = _free_port(store)
        if tenant["port"]:
            log.warning("tenant %s moved to port %d: another process uses its former port", tenant["name"], port)
    return store.update(tenant, port=port, url=f"http://{host}:{port}")


def _free_port(store: Store) -> int:
    tenants = (*store.all(tables.ACCOUNTS, kind="master"), *store.all(tables.ACCOUNTS, kind="provider"))
    taken = {tenant.number("port") for tenant in tenants}
    return next(port for port in random.sample(PORTS, len(PORTS)) if port not in taken and is_free(port))
