"""3scale's state, as its API returns it. Unread parts are None.

A null in an answer counts as the field's default. Prices are texts, fees are numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import model_validator

from domain.model import Model
from domain.schema import Json, JsonObject

LEAVING = "scheduled_for_deletion"  # the state of a deleted tenant, whose account stays for a while


class Found(Model):
    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: object) -> object:
        return {name: item for name, item in value.items() if item is not None} if isinstance(value, dict) else value


class Identified(Found):
    id: int


class FoundService(Identified):
    name: str = ""
    system_name: str = ""
    description: str = ""
    state: str = ""
    backend_version: str = ""
    deployment_option: str = ""
    annotations: dict[str, str] = {}


class FoundBackendApi(Identified):
    name: str = ""
    system_name: str = ""
    description: str = ""
    private_endpoint: str = ""
    annotations: dict[str, str] = {}


class FoundMetric(Identified):
    system_name: str = ""
    friendly_name: str = ""
    unit: str = ""
    description: str = ""
    parent_id: int = 0


class FoundMappingRule(Identified):
    metric_id: int = 0
    pattern: str = ""
    http_method: str = ""
    delta: int = 0
    position: int = 0
    last: bool = False


class FoundUsage(Identified):
    path: str = ""
    backend_id: int = 0


class FoundLimit(Identified):
    period: str = ""
    value: int = 0
    metric_id: int = 0


class FoundPricingRule(Identified):
    metric_id: int = 0
    cost_per_unit: str = ""
    min: int = 0
    max: int = 0


class FoundPlan(Identified):
    name: str = ""
    system_name: str = ""
    state: str = ""
    setup_fee: float = 0.0
    cost_per_month: float = 0.0
    trial_period_days: int = 0
    approval_required: bool = False
    limits: tuple[FoundLimit, ...] | None = None
    pricing_rules: tuple[FoundPricingRule, ...] | None = None


class FoundProduct(Found):
    looked: bool = False
    lost: bool = False  # the remembered id does not exist
    entry: FoundService | None = None
    metrics: tuple[FoundMetric, ...] | None = None
    rules: tuple[FoundMappingRule, ...] | None = None
    usages: tuple[FoundUsage, ...] | None = None
    plans: tuple[FoundPlan, ...] | None = None
    proxy: dict[str, Json] | None = None
    chain: tuple[dict[str, Json], ...] | None = None
    flow: dict[str, Json] | None = None
    used: dict[int, tuple[FoundMetric, ...]] = {}  # metrics of backends, by backend id
    deployed: str = ""  # the digest of the configuration in staging; empty if unknown
    configs: dict[str, int] = {}  # the newest version by environment, 0 if none; read only for automatic promotion


class FoundBackend(Found):
    looked: bool = False
    lost: bool = False
    entry: FoundBackendApi | None = None
    metrics: tuple[FoundMetric, ...] | None = None
    rules: tuple[FoundMappingRule, ...] | None = None


class FoundAccount(Identified):
    org_name: str = ""
    state: str = ""
    credit_card_stored: bool = False
    monthly_billing_enabled: bool = True
    monthly_charging_enabled: bool = True
    annotations: dict[str, str] = {}


class FoundUser(Identified):
    username: str = ""
    email: str = ""
    state: str = ""
    role: str = ""


class FoundApplication(Identified):
    name: str = ""
    description: str = ""
    state: str = ""
    service_id: int = 0
    plan_id: int = 0
    user_key: str = ""
    application_id: str = ""


class FoundDocument(Identified):
    name: str = ""
    system_name: str = ""
    description: str = ""
    published: bool = False
    skip_swagger_validations: bool = False
    body: str = ""
    service_id: int = 0


class FoundPolicy(Identified):
    name: str = ""
    version: str = ""
    schema_: JsonObject = {}

    @model_validator(mode="before")
    @classmethod
    def _named(cls, value: object) -> object:
        if isinstance(value, dict) and "schema" in value:
            return {**value, "schema_": value["schema"]}
        return value


class UnexpectedAnswerError(ValueError):
    pass


def answer_of(wrapper: str, answer: object) -> JsonObject:
    inner = answer.get(wrapper, answer) if isinstance(answer, Mapping) else {}
    return dict(inner) if isinstance(inner, Mapping) else {}


def answers_of(wrapper: str, answer: object) -> tuple[JsonObject, ...]:
    return tuple(answer_of(wrapper, each) for each in entries_of(answer))


def entries_of(answer: object) -> tuple[object, ...]:
    """The entries of an answer, which is a list or an object with a list; empty if the answer is None.

    Raises UnexpectedAnswerError if there is no list, because an empty list would make passes create everything again.
    """
    if answer is None:
        return ()
    if isinstance(answer, Mapping):
        answer = next((value for name, value in answer.items() if name != "metadata" and _is_list(value)), None)
    if not _is_list(answer):
        raise UnexpectedAnswerError("a list was expected, but the answer has none")
    return tuple(answer)  # type: ignore[arg-type]


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
