"""Two values of OPERATOR_DOMAIN in one process: each is served under its own names, and nothing else knows a domain."""

from __future__ import annotations

import ast
import json
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from claim_scenes import BOUND, NOW, asking, claim, config_map, entry, handle, provider

from activities.claims.evaluation import FUNCTIONS
from activities.claims.evaluator import Evaluator
from domain.claims import KINDS, RESOURCE_CLAIM, RESOURCE_POOL_SCALING, binder
from domain.claims.claim_evaluation import plan_claim
from domain.claims.domain_names import DomainNames
from domain.claims.evaluator_interface import (
    BindingQuestion,
    ClaimQuestion,
    HandleQuestion,
    PoolQuestion,
    Question,
    WantedEntry,
)
from domain.claims.handle_binding import plan_binding
from domain.claims.handle_creation import plan_pool_handle
from domain.claims.handle_evaluation import plan_handle
from domain.claims.handle_matching import free_handle
from domain.custom_resources import all_crds
from domain.identity import objectless
from domain.model import Model
from domain.operator_domain import DEFAULT, PLACEHOLDER
from engine.kube import KubeApi
from engine.kube.connection import Connection
from engine.settings import Settings
from starters.watch.claims import watched_for

ROOT = Path(__file__).parents[3]
PRODUCT = ("domain", "engine", "workflows", "activities", "workers", "starters", "localcloud", "yawollet")
ONE, TWO = DomainNames(domain="one.example.org"), DomainNames(domain="two.example.net")
BASE = provider(
    parameters=[{"name": "n", "default": {"value": 1}}],
    template={"enable": True, "definition": {"data": {"n": "{{ n }}"}}},
    override={
        **config_map(),
        "data": {
            "claim": "{{ resource_claim.ref.apiVersion if resource_claim else '' }}",
            "handle": "{{ resource_handle.ref.apiVersion }}",
            "for": "{{ resource_provider.ref.apiVersion }}",
        },
    },
    resourceClaimLabels={"team": "blue"},
)
ADOPTED = {**config_map("guid0-b7k2q"), "metadata": {"name": "guid0-b7k2q", "namespace": "things"}}


def under(names: DomainNames, obj: Any) -> Any:
    """The object as its users write it under a domain."""
    return json.loads(json.dumps(obj).replace(DEFAULT, names.domain))


def questions(names: DomainNames) -> Iterator[tuple[Callable[..., Model], Question]]:
    """Each kind of question, asked of objects of a domain."""
    shared: Any = {"now": NOW, "names": names, "providers": {"base": under(names, BASE)}}
    requested, accepted = under(names, asking({})), under(names, asking({}, accepted={"n": 1}))
    held = under(names, handle(entry("base", "base"), status={"healthy": True, "ready": True}))
    holder = under(names, BOUND)
    bound = {**held, "spec": {**held["spec"], **holder}}
    listed = under(names, claim(resources=[entry("base", template=config_map())]))
    pool = under(names, {"metadata": {"name": "spare", "namespace": "poolboy"}, "spec": {"provider": {"name": "base"}}})
    yield plan_claim, ClaimQuestion(**shared, claim=requested)
    yield plan_claim, ClaimQuestion(**shared, claim=listed, assigned=("base",))
    yield plan_binding, BindingQuestion(**shared, claim=accepted, handle=held, wanted=(WantedEntry(provider="base"),))
    yield plan_pool_handle, PoolQuestion(**shared, pool=pool, handle_name="guid-b7k2q")
    yield plan_handle, HandleQuestion(**shared, claim=accepted, handle=bound, push=True)
    yield plan_handle, HandleQuestion(**shared, claim=accepted, handle=bound, states=(ADOPTED,))


def question_pairs() -> list[tuple[Callable[..., Model], Question, Question]]:
    return [(plan, one, two) for (plan, one), (_, two) in zip(questions(ONE), questions(TWO), strict=True)]


def test_every_plan_is_the_same_under_both_domains_but_for_the_domain() -> None:
    for plan, one, two in question_pairs():
        made, other = plan(one).model_dump_json(), plan(two).model_dump_json()
        assert ONE.domain in made
        assert made.replace(ONE.domain, TWO.domain) == other
        assert DEFAULT not in made


@pytest.fixture
async def evaluator() -> AsyncIterator[Evaluator]:
    async with Evaluator(FUNCTIONS, processes=2, time=timedelta(seconds=20)) as started:
        yield started


async def test_one_evaluator_answers_for_both_domains(evaluator: Evaluator) -> None:
    for plan, one, two in question_pairs():
        for question in (one, two):
            here = plan(question)
            assert await evaluator.call(plan, question, type(here)) == here


def test_a_label_of_another_domain_says_nothing() -> None:
    ignored = under(ONE, handle(entry("base")))
    ignored["metadata"]["labels"] = {ONE.ignore_label: ""}
    assert free_handle(ONE, ignored) is None
    assert free_handle(TWO, ignored) is not None
    views = [watched_for(Settings(OPERATOR_DOMAIN=names.domain))[1].read(ignored) for names in (ONE, TWO)]
    assert [view.facts.get("ignored", "") for view in views] == ["true", ""]


def test_binders_of_two_domains_are_two_lifecycles() -> None:
    ids = [binder(names.domain, "north").workflow_id for names in (ONE, TWO)]
    assert ids == ["north/ClaimBinder/-/one.example.org/0", "north/ClaimBinder/-/two.example.net/0"]
    assert objectless("ClaimBinder", "north", ONE.domain) == (binder(ONE.domain, "north"),)


def test_definitions_of_two_domains_differ_in_group_and_name_alone() -> None:
    one, two = (json.dumps(all_crds(names.domain)) for names in (ONE, TWO))
    assert one.replace(ONE.domain, TWO.domain) == two
    assert DEFAULT not in one
    assert PLACEHOLDER not in one
    assert "resourceclaims.one.example.org" in one
    assert "accounts.aws.managed.openshift.io" in one


async def test_clients_of_two_domains_ask_for_kinds_of_their_own() -> None:
    for names in (ONE, TWO):
        settings = Settings(OPERATOR_DOMAIN=names.domain)
        connection = Connection(content=cast(Any, {}))
        api = KubeApi(
            connection,
            process="tests",
            operator_domain=settings.claims_domain,
        )
        assert api.path(RESOURCE_CLAIM, "labs", "mine") == (
            f"/apis/{names.domain}/v1/namespaces/labs/resourceclaims/mine"
        )
        await api.close()


def test_a_kind_without_its_domain_has_no_api_version_to_be_mistaken_for() -> None:
    for kind in (each for each in KINDS if each.plural):
        with pytest.raises(ValueError, match="OPERATOR_DOMAIN"):
            assert kind.api_version
        assert ONE.of(kind).api_version == ONE.api_version
        assert ONE.of(kind).finalizer == (ONE.finalizer if kind.lifecycle else "")
    assert ONE.of(RESOURCE_POOL_SCALING).finalizer == ""


@pytest.mark.parametrize("package", PRODUCT)
def test_only_the_settings_read_the_variable_and_one_module_knows_the_default(package: str) -> None:
    may_name = {"engine/settings.py": {"OPERATOR_DOMAIN"}, "domain/operator_domain.py": {DEFAULT}}
    found = {}
    for path in sorted((ROOT / package).rglob("*.py")):
        name = str(path.relative_to(ROOT))
        wrong = {"OPERATOR_DOMAIN", DEFAULT} & set(literals(path)) - may_name.get(name, set())
        if wrong:
            found[name] = wrong
    assert not found


@pytest.mark.parametrize("package", ["domain/claims", "activities/claims", "workflows", "starters"])
def test_no_module_of_the_area_reads_settings_or_environment_when_it_is_imported(package: str) -> None:
    paths = sorted((ROOT / package).rglob("claim*.py" if package in ("workflows", "starters") else "*.py"))
    assert paths
    for path in paths:
        assert not read_at_import(ast.parse(path.read_text())), path


def literals(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def read_at_import(module: ast.Module) -> list[str]:
    """What the module's own statements call or look into to learn of its process."""

    def at_import(node: ast.AST) -> Iterator[ast.AST]:
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                yield child
                yield from at_import(child)

    nodes = list(at_import(module))
    called = [ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)]
    looked_into = [ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)]
    return [name for name in (*called, *looked_into) if name in {"settings", "Settings", "os.environ", "os.getenv"}]


def test_a_read_at_import_is_found() -> None:
    assert read_at_import(ast.parse("DOMAIN = settings().claims_domain"))
    assert read_at_import(ast.parse("import os\nclass A:\n    domain = os.environ.get('OPERATOR_DOMAIN')"))
    assert not read_at_import(ast.parse("def domain():\n    return settings().claims_domain"))
