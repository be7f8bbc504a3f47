"""The tables. A field is a column if it is a relation or unique, or if rows are counted or sorted by it. All other
fields are JSON in `attributes`.

Every table also has `id`, `created_at`, `updated_at` and `born`. Lists that omit new rows (`stale_list_seconds`)
compare `born`. In each table ids start at a different number, so that an id of the wrong kind finds nothing.
"""

from __future__ import annotations

ACCOUNTS = "accounts"
USERS = "users"
TOKENS = "tokens"
SERVICES = "services"
BACKENDS = "backends"
PROXIES = "proxies"
PROXY_CONFIGS = "proxy_configs"
METRICS = "metrics"
MAPPING_RULES = "mapping_rules"
BACKEND_USAGES = "backend_usages"
PLANS = "plans"
LIMITS = "limits"
PRICING_RULES = "pricing_rules"
APPLICATIONS = "applications"
KEYS = "keys"
SUBSCRIPTIONS = "subscriptions"
ACTIVE_DOCS = "active_docs"
POLICIES = "policies"
FEATURES = "features"
FIELDS_DEFINITIONS = "fields_definitions"

_OF_SERVICE = "service_id INTEGER NOT NULL REFERENCES services(id) ON DELETE CASCADE"
_OF_METRIC = "metric_id INTEGER NOT NULL REFERENCES metrics(id) ON DELETE CASCADE"
_OF_PLAN = "plan_id INTEGER NOT NULL REFERENCES plans(id) ON DELETE CASCADE"
_OF_TENANT = "tenant_id INTEGER NOT NULL REFERENCES accounts(id) ON DELETE CASCADE"
_OF_ACCOUNT = "account_id INTEGER NOT NULL REFERENCES accounts(id) ON DELETE CASCADE"
# Exactly one of the two is set, since products and backends both have metrics and mapping rules.
_OF_EITHER = """
    service_id INTEGER REFERENCES services(id) ON DELETE CASCADE,
    backend_id INTEGER REFERENCES backends(id) ON DELETE CASCADE"""

TABLES = {
    # Tenants are accounts of the master, which is its own provider; developer accounts are accounts of a tenant.
    ACCOUNTS: """
        provider_id INTEGER REFERENCES accounts(id) ON DELETE CASCADE,
        kind TEXT NOT NULL CHECK (kind IN ('master', 'provider', 'buyer')),
        org_name TEXT NOT NULL,
        state TEXT NOT NULL,
        name TEXT UNIQUE,
        host TEXT UNIQUE,
        port INTEGER,
        plan_id INTEGER""",
    # Names are unique within `realm`: the tenant's id for developers, its negated id for the tenant's own users.
    USERS: f"""
        {_OF_ACCOUNT},
        realm INTEGER NOT NULL,
        username TEXT NOT NULL,
        email TEXT,
        state TEXT NOT NULL,
        role TEXT NOT NULL,
        UNIQUE (realm, username),
        UNIQUE (realm, email)""",
    TOKENS: f"""
        {_OF_TENANT},
        user_id INTEGER NOT NULL REFERENCES users(id) ON DELETE CASCADE,
        value TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL,
        permission TEXT NOT NULL""",
    SERVICES: f"""
        {_OF_TENANT},
        name TEXT NOT NULL,
        system_name TEXT NOT NULL,
        state TEXT NOT NULL,
        is_default INTEGER NOT NULL DEFAULT 0,
        deleted REAL,
        UNIQUE (tenant_id, system_name)""",
    BACKENDS: f"""
        {_OF_TENANT},
        name TEXT NOT NULL,
        system_name TEXT NOT NULL,
        deleted REAL,
        UNIQUE (tenant_id, system_name)""",
    PROXIES: f"{_OF_SERVICE}, lock_version INTEGER NOT NULL DEFAULT 0, UNIQUE (service_id)",
    PROXY_CONFIGS: f"""
        {_OF_SERVICE},
        environment TEXT NOT NULL,
        version INTEGER NOT NULL,
        UNIQUE (service_id, environment, version)""",
    METRICS: f"""
        {_OF_EITHER},
        parent_id INTEGER REFERENCES metrics(id) ON DELETE CASCADE,
        system_name TEXT NOT NULL,
        friendly_name TEXT NOT NULL,
        UNIQUE (service_id, system_name),
        UNIQUE (service_id, friendly_name),
        UNIQUE (backend_id, system_name),
        UNIQUE (backend_id, friendly_name)""",
    MAPPING_RULES: f"{_OF_EITHER}, {_OF_METRIC}, position INTEGER NOT NULL",
    BACKEND_USAGES: f"""
        {_OF_SERVICE},
        backend_id INTEGER NOT NULL REFERENCES backends(id) ON DELETE CASCADE,
        path TEXT NOT NULL COLLATE NOCASE,
        UNIQUE (service_id, backend_id),
        UNIQUE (service_id, path)""",
    # Application and service plans belong to a service, account plans to the tenant alone.
    PLANS: f"""
        {_OF_TENANT},
        service_id INTEGER REFERENCES services(id) ON DELETE CASCADE,
        kind TEXT NOT NULL CHECK (kind IN ('application', 'service', 'account')),
        system_name TEXT NOT NULL,
        name TEXT NOT NULL,
        state TEXT NOT NULL,
        is_default INTEGER NOT NULL DEFAULT 0,
        UNIQUE (service_id, kind, system_name)""",
    LIMITS: f"""
        {_OF_PLAN}, {_OF_METRIC},
        period TEXT NOT NULL,
        value INTEGER NOT NULL,
        UNIQUE (plan_id, metric_id, period)""",
    PRICING_RULES: f"{_OF_PLAN}, {_OF_METRIC}",
    APPLICATIONS: f"""
        {_OF_ACCOUNT}, {_OF_SERVICE}, {_OF_PLAN},
        tenant_id INTEGER NOT NULL,
        name TEXT NOT NULL,
        state TEXT NOT NULL,
        user_key TEXT,
        application_id TEXT,
        UNIQUE (service_id, user_key),
        UNIQUE (service_id, application_id)""",
    KEYS: """
        application INTEGER NOT NULL REFERENCES applications(id) ON DELETE CASCADE,
        value TEXT NOT NULL,
        UNIQUE (application, value)""",
    SUBSCRIPTIONS: f"{_OF_ACCOUNT}, {_OF_SERVICE}, {_OF_PLAN}, state TEXT NOT NULL, UNIQUE (account_id, service_id)",
    ACTIVE_DOCS: f"""
        {_OF_TENANT},
        service_id INTEGER REFERENCES services(id) ON DELETE SET NULL,
        system_name TEXT NOT NULL,
        UNIQUE (tenant_id, system_name)""",
    POLICIES: f"{_OF_TENANT}, name TEXT NOT NULL, version TEXT NOT NULL, UNIQUE (tenant_id, name, version)",
    FEATURES: f"{_OF_SERVICE}, system_name TEXT NOT NULL, UNIQUE (service_id, system_name)",
    FIELDS_DEFINITIONS: f"""
        {_OF_TENANT},
        target TEXT NOT NULL,
        name TEXT NOT NULL,
        UNIQUE (tenant_id, target, name)""",
}

INDEXES = (
    "CREATE INDEX IF NOT EXISTS accounts_of_provider ON accounts (provider_id)",
    "CREATE INDEX IF NOT EXISTS users_of_account ON users (account_id)",
    "CREATE INDEX IF NOT EXISTS rules_of_service ON mapping_rules (service_id)",
    "CREATE INDEX IF NOT EXISTS rules_of_backend ON mapping_rules (backend_id)",
    "CREATE INDEX IF NOT EXISTS rules_of_metric ON mapping_rules (metric_id)",
    "CREATE INDEX IF NOT EXISTS metrics_of_parent ON metrics (parent_id)",
    "CREATE INDEX IF NOT EXISTS usages_of_backend ON backend_usages (backend_id)",
    "CREATE INDEX IF NOT EXISTS plans_of_tenant ON plans (tenant_id)",
    "CREATE INDEX IF NOT EXISTS limits_of_metric ON limits (metric_id)",
    "CREATE INDEX IF NOT EXISTS prices_of_plan ON pricing_rules (plan_id)",
    "CREATE INDEX IF NOT EXISTS prices_of_metric ON pricing_rules (metric_id)",
    "CREATE INDEX IF NOT EXISTS applications_of_account ON applications (account_id)",
    "CREATE INDEX IF NOT EXISTS applications_of_tenant ON applications (tenant_id)",
    "CREATE INDEX IF NOT EXISTS applications_of_plan ON applications (plan_id)",
    "CREATE INDEX IF NOT EXISTS subscriptions_of_plan ON subscriptions (plan_id)",
    "CREATE INDEX IF NOT EXISTS deleted_services ON services (deleted) WHERE deleted IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS deleted_backends ON backends (deleted) WHERE deleted IS NOT NULL",
)

_IDS_APART = 100_000


def first_id(table: str) -> int:
    return 1 if table == ACCOUNTS else list(TABLES).index(table) * _IDS_APART + 1
