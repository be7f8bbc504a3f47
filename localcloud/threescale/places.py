"""Where tenants are: each on a port of its own.

Programs tell tenants apart by their addresses, and a loopback address has no other part that could differ. The host
name of a tenant (`NAME-admin.3scale.localhost`) leads to it on every port as well, for clients that can resolve it.
Ports are kept over restarts; one that somebody else took meanwhile is replaced, which the log tells.
"""

from __future__ import annotations

import logging
import random

from localcloud.state import is_free
from localcloud.threescale import tables
from localcloud.threescale.store import Record, Store

log = logging.getLogger(__name__)

# Apart from those that a local deployment chooses for its services, so that neither takes what the other remembers.
PORTS = range(14_000, 20_000)


def settle(store: Store, tenant: Record, host: str, wanted: int = 0) -> Record:
    """Give a tenant the port that it is to have, else the one it had, else a free one."""
    port = wanted or tenant.number("port")
    if not wanted and (not port or not is_free(port)):
        port = _free_port(store)
        if tenant["port"]:
            log.warning("tenant %s moved to port %d: somebody else has its own", tenant["name"], port)
    return store.update(tenant, port=port, url=f"http://{host}:{port}")


def _free_port(store: Store) -> int:
    tenants = (*store.all(tables.ACCOUNTS, kind="master"), *store.all(tables.ACCOUNTS, kind="provider"))
    taken = {tenant.number("port") for tenant in tenants}
    return next(port for port in random.sample(PORTS, len(PORTS)) if port not in taken and is_free(port))
