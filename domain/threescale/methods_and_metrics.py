"""The calls for metrics and methods of products and backends.

    changes, creations ─► rules ─► (gateway) ─► deletions

Deletions come after the deployment (`metrics_in_use.py`). Until then a surplus metric is renamed if a wanted metric
needs its friendly name. If a metric must become a method, or a method a metric, it is deleted (`obstacles`) when rules
and gateway do not use it any more, then created again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from domain.model import Model
from domain.schema import Json
from domain.threescale.calls import Resource, Write, change, creation, deletion
from domain.threescale.normalize import bare_name, described, same_text
from domain.threescale.remote_state import FoundMetric
from domain.threescale.resources.shared import HITS, Metric, ProductMethod
from domain.threescale.swapped_values import ASIDE, in_turn


class Owner(Model):
    path: str
    rules_path: str
    backend_id: int = 0  # the backend's id, which is the suffix of its metrics' system names; 0 for a product

    @classmethod
    def product(cls, id_: int) -> Owner:
        return cls(path=f"services/{id_}", rules_path=f"services/{id_}/proxy/mapping_rules")

    @classmethod
    def backend(cls, id_: int) -> Owner:
        path = f"backend_apis/{id_}"
        return cls(path=path, rules_path=f"{path}/mapping_rules", backend_id=id_)

    def bare(self, metric: FoundMetric) -> str:
        return bare_name(metric.system_name, self.backend_id) if self.backend_id else metric.system_name

    def ids(self, metrics: Iterable[FoundMetric]) -> dict[str, int]:
        return {self.bare(each): each.id for each in metrics}


class Counting(Model):
    """Calls: `obstacles` first, `writes` before the calls for mapping rules, `farewells` (deletions) after the
    deployment.
    """

    obstacles: tuple[Write, ...] = ()
    writes: tuple[Write, ...] = ()
    farewells: tuple[Write, ...] = ()


class _Wanted(Model):
    """As with the replaced operator, an absent description equals an empty description."""

    name: str
    method: bool
    fields: dict[str, str]

    def is_kind_of(self, found: FoundMetric) -> bool:
        return self.method == bool(found.parent_id)

    def differing(self, found: FoundMetric) -> dict[str, Json]:
        now = {"friendly_name": found.friendly_name, "unit": found.unit, "description": found.description}
        return {name: value for name, value in self.fields.items() if not same_text(value, now[name])}


def count(
    owner: Owner, metrics: Mapping[str, Metric], methods: Mapping[str, ProductMethod], found: Sequence[FoundMetric]
) -> Counting:
    wanted = {each.name: each for each in (*_metrics(metrics), *_methods(methods))}
    hits = next((each.id for each in found if owner.bare(each) == HITS), 0)
    keeps = {owner.bare(each): each for each in found if _is_wanted(owner, each, wanted)}
    friendly = {each.fields["friendly_name"] for each in wanted.values()}
    left = [each for each in found if keeps.get(owner.bare(each)) != each]
    obstacles = tuple(_deletion(owner, each, hits) for each in left if owner.bare(each) in wanted)
    aside = [each for each in left if each.friendly_name in friendly]
    steps = [_change(owner, each, hits, {"friendly_name": ASIDE.format(each.friendly_name)}) for each in aside]
    changes = _changes(owner, wanted, keeps, hits)
    creations = [_creation(owner, each, hits) for name, each in wanted.items() if name not in keeps]
    farewells = tuple(_deletion(owner, each, hits) for each in left if owner.bare(each) not in wanted)
    return Counting(obstacles=obstacles, writes=(*steps, *changes, *creations), farewells=farewells)


def _metrics(metrics: Mapping[str, Metric]) -> Iterable[_Wanted]:
    for name, each in sorted(metrics.items()):
        fields = {"friendly_name": each.friendly_name, "unit": each.unit, "description": each.description or ""}
        yield _Wanted(name=name, method=False, fields=fields)


def _methods(methods: Mapping[str, ProductMethod]) -> Iterable[_Wanted]:
    for name, each in sorted(methods.items()):
        fields = {"friendly_name": each.friendly_name, "description": each.description or ""}
        yield _Wanted(name=name, method=True, fields=fields)


def _is_wanted(owner: Owner, found: FoundMetric, wanted: Mapping[str, _Wanted]) -> bool:
    each = wanted.get(owner.bare(found))
    return each is not None and each.is_kind_of(found)


def _changes(
    owner: Owner, wanted: Mapping[str, _Wanted], keeps: Mapping[str, FoundMetric], hits: int
) -> Iterable[Write]:
    """Metrics that exchange friendly names get temporary names in between."""
    by_id = {each.id: name for name, each in keeps.items()}
    differing = {each.id: wanted[name].differing(each) for name, each in keeps.items()}
    names = {id_: str(fields["friendly_name"]) for id_, fields in differing.items() if "friendly_name" in fields}
    for id_, friendly_name in in_turn({each.id: each.friendly_name for each in keeps.values()}, names):
        final = friendly_name == names[id_]
        fields: dict[str, Json] = differing.pop(id_) if final else {"friendly_name": friendly_name}
        yield _change(owner, keeps[by_id[id_]], hits, fields)
    for id_, fields in sorted(differing.items()):
        if fields:
            yield _change(owner, keeps[by_id[id_]], hits, fields)


def _change(owner: Owner, metric: FoundMetric, hits: int, fields: dict[str, Json]) -> Write:
    resource, path = _where(owner, method=bool(metric.parent_id), hits=hits)
    return change(resource, path, metric.id, fields, owner.bare(metric))


def _creation(owner: Owner, wanted: _Wanted, hits: int) -> Write:
    resource, path = _where(owner, method=wanted.method, hits=hits)
    full = f"{wanted.name}.{owner.backend_id}" if owner.backend_id else wanted.name
    fields = {**described(wanted.fields), "system_name": wanted.name}
    return creation(resource, path, fields, {"system_name": full}, wanted.name)


def _deletion(owner: Owner, metric: FoundMetric, hits: int) -> Write:
    resource, path = _where(owner, method=bool(metric.parent_id), hits=hits)
    return deletion(resource, path, metric.id, owner.bare(metric))


def _where(owner: Owner, *, method: bool, hits: int) -> tuple[Resource, str]:
    if method:
        return Resource.METHOD, f"{owner.path}/metrics/{hits}/methods"
    return Resource.METRIC, f"{owner.path}/metrics"
