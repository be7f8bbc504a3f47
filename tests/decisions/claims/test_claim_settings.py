"""Every environment variable of Poolboy is taken: it means the same, or the log says that it means nothing here."""

from __future__ import annotations

from datetime import timedelta

import pytest

from domain.claims.constants import IGNORED_VARIABLES
from engine.settings import Settings, present_variables

TAKEN = {
    "CLUSTER_DOMAIN": ("claims_cluster_domain", "apps.example.org", "apps.example.org"),
    "OPERATOR_DOMAIN": ("claims_domain", "poolboy.dev.local", "poolboy.dev.local"),
    "OPERATOR_NAMESPACE": ("claims_namespace", "elsewhere", "elsewhere"),
    "MANAGE_CLAIMS_INTERVAL": ("claims_interval", "61", timedelta(seconds=61)),
    "MANAGE_HANDLES_INTERVAL": ("claims_handles_interval", "62", timedelta(seconds=62)),
    "MANAGE_POOLS_INTERVAL": ("claims_pools_interval", "11", timedelta(seconds=11)),
    "RESOURCE_REFRESH_INTERVAL": ("claims_refresh_interval", "601", timedelta(seconds=601)),
}
OF_POOLBOY = {
    "CLUSTER_DOMAIN",
    "KOPF_OPTIONS",
    "MANAGE_CLAIMS_INTERVAL",
    "MANAGE_HANDLES_INTERVAL",
    "MANAGE_POOLS_INTERVAL",
    "METRICS_ENABLED",
    "METRICS_PORT",
    "OPERATOR_DOMAIN",
    "OPERATOR_MODE",
    "OPERATOR_NAMESPACE",
    "OPERATOR_VERSION",
    "RESOURCE_HANDLER_COUNT",
    "RESOURCE_HANDLER_IDX",
    "RESOURCE_HANDLER_RESOURCES",
    "RESOURCE_REFRESH_INTERVAL",
    "RESOURCE_WATCH_RESOURCES",
    "WATCH_NAME",
}


@pytest.mark.parametrize("variable", TAKEN)
def test_a_variable_of_poolboy_means_what_it_meant(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    field, text, value = TAKEN[variable]
    assert getattr(Settings(), field) != value
    monkeypatch.setenv(variable, text)
    assert getattr(Settings(), field) == value


def test_no_variable_of_poolboy_is_forgotten() -> None:
    assert {*TAKEN, *IGNORED_VARIABLES} == OF_POOLBOY


def test_a_setting_without_effect_is_named_only_where_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOPF_OPTIONS", "--log-format=json")
    monkeypatch.setenv("METRICS_PORT", "9091")
    assert present_variables(IGNORED_VARIABLES) == ("KOPF_OPTIONS", "METRICS_PORT")
