"""What 3scale has, as its API says it. What has not been read yet is None, so that a decision reads only what it needs.

Lists come wrapped in many ways (`answers_of`), texts and numbers may be null where they are empty, prices are texts and
fees are numbers. Methods stand in the list of metrics, and are known by their parent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import model_validator

from domain.model import Model
from domain.schema import Json, JsonObject

MANAGED_BY = {"managed_by": "operator"}


class Found(Model):
    """An object of 3scale; null stands for what is empty."""

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: object) -> object:
        return {name: item for name, item in value.items() if item is not None} if isinstance(value, dict) else value


class Identified(Found):
    """One that has an id."""

    id: int


class FoundService(Identified):
    """A product's own fields."""

    name: str = ""
    system_name: str = ""
    description: str = ""
    state: str = ""
    backend_version: str = ""
    deployment_option: str = ""
    annotations: dict[str, str] = {}


class FoundBackendApi(Identified):
    """A backend's own fields."""

    name: str = ""
    system_name: str = ""
    description: str = ""
    private_endpoint: str = ""
    annotations: dict[str, str] = {}


class FoundMetric(Identified):
    """A metric, or with a parent a method."""

    system_name: str = ""
    friendly_name: str = ""
    unit: str = ""
    description: str = ""
    parent_id: int = 0


class FoundMappingRule(Identified):
    """A rule with its place, from 1 on."""

    metric_id: int = 0
    pattern: str = ""
    http_method: str = ""
    delta: int = 0
    position: int = 0
    last: bool = False


class FoundUsage(Identified):
    """That a product uses a backend."""

    path: str = ""
    backend_id: int = 0


class FoundLimit(Identified):
    """A limit of a plan."""

    period: str = ""
    value: int = 0
    metric_id: int = 0


class FoundPricingRule(Identified):
    """A price of a plan; the cost is a text."""

    metric_id: int = 0
    cost_per_unit: str = ""
    min: int = 0
    max: int = 0


class FoundPlan(Identified):
    """A plan, and what it limits and costs."""

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
    """A product with all that is its own.

    `looked` is False until it was looked for, `lost` True when there is none with the id that was remembered.

    `used` are metrics of backends, by the backends' ids. `deployed` is the configuration that the sandbox is known to
    have; empty if that is not known. `configs` are the newest versions of its configuration, by environment, 0 where
    there is none; read only of a product that is promoted by itself.
    """

    looked: bool = False
    lost: bool = False
    service: FoundService | None = None
    metrics: tuple[FoundMetric, ...] | None = None
    rules: tuple[FoundMappingRule, ...] | None = None
    usages: tuple[FoundUsage, ...] | None = None
    plans: tuple[FoundPlan, ...] | None = None
    proxy: dict[str, Json] | None = None
    chain: tuple[dict[str, Json], ...] | None = None
    flow: dict[str, Json] | None = None
    used: dict[int, tuple[FoundMetric, ...]] = {}
    deployed: str = ""
    configs: dict[str, int] = {}


class FoundBackend(Found):
    """A backend with all that is its own."""

    looked: bool = False
    lost: bool = False
    backend: FoundBackendApi | None = None
    metrics: tuple[FoundMetric, ...] | None = None
    rules: tuple[FoundMappingRule, ...] | None = None


class FoundAccount(Identified):
    """An organisation."""

    org_name: str = ""
    state: str = ""
    credit_card_stored: bool = False
    monthly_billing_enabled: bool = True
    monthly_charging_enabled: bool = True
    annotations: dict[str, str] = {}


class FoundUser(Identified):
    """A person of an organisation."""

    username: str = ""
    email: str = ""
    state: str = ""
    role: str = ""


class FoundApplication(Identified):
    """What an organisation calls a product with."""

    name: str = ""
    description: str = ""
    state: str = ""
    service_id: int = 0
    plan_id: int = 0
    user_key: str = ""
    application_id: str = ""


class FoundDocument(Identified):
    """A document for readers of an API."""

    name: str = ""
    system_name: str = ""
    description: str = ""
    published: bool = False
    skip_swagger_validations: bool = False
    body: str = ""
    service_id: int = 0


class FoundPolicy(Identified):
    """A policy of the tenant's registry."""

    name: str = ""
    version: str = ""
    schema_: JsonObject = {}

    @model_validator(mode="before")
    @classmethod
    def _named(cls, value: object) -> object:
        """`schema` is a word of pydantic's own."""
        if isinstance(value, dict) and "schema" in value:
            return {**value, "schema_": value["schema"]}
        return value


class UnexpectedAnswerError(ValueError):
    """An answer that has not the documented shape."""


def answer_of(wrapper: str, answer: object) -> JsonObject:
    """The object of an answer, out of its wrapper where it has one."""
    inner = answer.get(wrapper, answer) if isinstance(answer, Mapping) else {}
    return dict(inner) if isinstance(inner, Mapping) else {}


def answers_of(wrapper: str, answer: object) -> tuple[JsonObject, ...]:
    """The objects of a list, with or without a wrapper around each; None stands for an absent list, which has none."""
    return tuple(answer_of(wrapper, each) for each in entries_of(answer))


def entries_of(answer: object) -> tuple[object, ...]:
    """The entries of a list as they came. 3scale answers with a bare list, or with one under its plural.

    Raises:
        UnexpectedAnswerError: there is no list. To take that for an empty one would make everything again.
    """
    if answer is None:
        return ()
    if isinstance(answer, Mapping):
        answer = next((value for name, value in answer.items() if name != "metadata" and _is_list(value)), None)
    if not _is_list(answer):
        raise UnexpectedAnswerError("a list was expected, and there is none")
    return tuple(answer)  # type: ignore[arg-type]


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
