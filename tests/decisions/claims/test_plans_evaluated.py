"""The four questions as the passes ask them: in a process that can only compute, where nothing is imported late."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from claim_domain import NAMES
from claim_scenes import BOUND, NOW, asking, claim, config_map, entry, handle, provider
from test_handle_binding import wanted
from test_handle_creation import pool

from activities.claims.evaluator import Evaluator
from domain.claims.claim_evaluation import plan_claim
from domain.claims.evaluator_interface import (
    BindingQuestion,
    ClaimPlan,
    ClaimQuestion,
    HandleBody,
    HandlePlan,
    HandleQuestion,
    PoolQuestion,
)
from domain.claims.handle_binding import plan_binding
from domain.claims.handle_creation import plan_pool_handle
from domain.claims.handle_evaluation import plan_handle

# Everything that computes differently: templates, schemas, checks, patterns, JMESPath, durations.
BASE = provider(
    "base",
    match={"kind": "ConfigMap"},
    matchIgnore=["/data/.*"],
    parameters=[
        {
            "name": "n",
            "default": {"template": "{{ '[0-9]{3}' | strgen | int }}"},
            "validation": {
                "openAPIV3Schema": {"type": "integer", "maximum": 5000, "pattern": "x"},
                "checks": [{"name": "c", "check": "value > -1"}],
            },
        },
    ],
    override={
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "data": {"at": "{{ now(utc=True, fmt='%Y') }}", "who": "{{ guid }}"},
    },
    template={"enable": True, "definition": {"data": {"n": "{{ n }}"}}},
    updateFilters=[{"pathMatch": "/data/.*"}],
    healthCheck="[metadata] | json_query('[0].name') != ''",
    readinessCheck="timestamp('2020-01-01T00:00:00Z').add('1h') < timestamp.utcnow",
    statusSummaryTemplate={"n": "{{ resources | length | int }}"},
    lifespan={"default": "{{ '1h' | parse_time_interval }}", "maximum": "1d", "unclaimed": "1d"},
    validation={"openAPIV3Schema": {"type": "object"}, "checks": [{"name": "kind", "check": "kind == 'ConfigMap'"}]},
)
PROVIDERS = {"base": BASE}


@pytest.fixture
async def evaluator() -> AsyncIterator[Evaluator]:
    async with Evaluator([plan_claim, plan_binding, plan_pool_handle, plan_handle], processes=2) as started:
        yield started


@pytest.mark.parametrize(
    ("user_claim", "assigned"),
    [(asking({}), ()), (claim(resources=[entry("base", template=config_map())]), ("base",)), (claim(), ())],
)
async def test_a_claim_is_planned(evaluator: Evaluator, user_claim: Any, assigned: Any) -> None:
    question = ClaimQuestion(names=NAMES, now=NOW, providers=PROVIDERS, claim=user_claim, assigned=assigned)
    plan = await evaluator.call(plan_claim, question, ClaimPlan)
    assert (plan.creation is None) == (plan.fault is not None) == (not user_claim["spec"])


async def test_refused_values_are_reported(evaluator: Evaluator) -> None:
    question = ClaimQuestion(names=NAMES, now=NOW, providers=PROVIDERS, claim=asking({"n": 9000, "m": 1}))
    plan = await evaluator.call(plan_claim, question, ClaimPlan)
    assert len(plan.status["provider"]["validationErrors"]) == 2  # type: ignore[index, call-overload, arg-type]


async def test_a_handle_is_bound_observed_and_its_claim_shown(evaluator: Evaluator) -> None:
    user_claim = asking({}, accepted={"n": 1})
    user_claim["spec"] |= {
        "autoDelete": {"when": "status.resources | json_query('[0].ready')"},
        "lifespan": {"end": "2027-01-01T00:00:00Z"},
    }
    held = handle(entry("base", "x"), lifespan={"default": "{{ '2h' }}", "relativeMaximum": "5h"})
    binding = BindingQuestion(
        names=NAMES, now=NOW, providers=PROVIDERS, claim=user_claim, handle=held, wanted=wanted(entry("base", "base"))
    )
    bound = await evaluator.call(plan_binding, binding, HandleBody)
    assert bound.fault is None
    live = {**config_map("guid0-b7k2q", at="0", n="0"), "metadata": {"name": "guid0-b7k2q", "annotations": {}}}
    question = HandleQuestion(
        names=NAMES,
        now=NOW,
        providers=PROVIDERS,
        handle={**held, "spec": bound.spec},
        claim=user_claim,
        states=(live,),
        push=True,
    )
    plan = await evaluator.call(plan_handle, question, HandlePlan)
    assert plan.faults == ()
    assert (plan.auto_delete, plan.by_clock, len(plan.updates)) == (True, True, 1)
    assert plan.handle_status["ready"] is True


async def test_a_pools_handle_is_made(evaluator: Evaluator) -> None:
    question = PoolQuestion(
        names=NAMES, now=NOW, providers=PROVIDERS, pool=pool(provider={"name": "base", "parameterValues": {"n": 1}})
    )
    body = await evaluator.call(plan_pool_handle, question, HandleBody)
    assert body.spec["resources"][0]["template"] == {"data": {"n": "1"}}  # type: ignore[index, call-overload]


async def test_faults_come_back_as_answers(evaluator: Evaluator) -> None:
    broken = provider(
        "base", template={"enable": True}, override={"x": "{{ gone }}"}, updateFilters=[{"pathMatch": "("}]
    )
    question = HandleQuestion(
        names=NAMES, now=NOW, providers={"base": broken}, handle=handle(entry("base"), **BOUND), claim=claim()
    )
    plan = await evaluator.call(plan_handle, question, HandlePlan)
    assert [fault.reason for fault in plan.faults] == ["TemplateFailed"]
