"""The replacement of a set's condemned machines (`machine_health.py`).

A condemned machine that has reported may still forward traffic, so its replacement is created first, for one machine at
a time; if quota does not allow a replacement, the machine is deleted first. A machine that never reported (a failed
boot), or whose server is gone, is deleted at once.

While no machine of the installation reports, only one set creates a replacement (`fleet_silence.py`). A machine whose
Envoy rejects the configuration is not replaced (`config_rejection.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from domain.loadbalancers.config_rejection import config_fault, rejection_of
from domain.loadbalancers.fleet_silence import Fleet
from domain.loadbalancers.machine_health import HealthState, Timings, is_master
from domain.loadbalancers.resources import LoadBalancerSet
from domain.loadbalancers.selectors import age
from domain.loadbalancers.set_status import MachineReadiness
from domain.model import Model


class Ranks(Model):
    counted: tuple[MachineReadiness, ...] = ()  # machines that count as replicas
    former: tuple[MachineReadiness, ...] = ()  # condemned machines that may still serve
    useless: tuple[MachineReadiness, ...] = ()  # condemned machines that cannot serve
    hold: str = ""  # why condemned machines are not replaced; empty if they may be
    retained: bool = False  # `former` machines are deleted only in excess of the wanted number
    look_again: datetime | None = None  # when to decide again, if no event will report the end of the hold


def ranks_of(
    machine_set: LoadBalancerSet, alive: Sequence[MachineReadiness], fleet: Fleet, now: datetime, timings: Timings
) -> Ranks:
    condemned = [each for each in alive if each.health.state is HealthState.CONDEMNED]
    counted = tuple(each for each in alive if each not in condemned)
    useless = tuple(each for each in condemned if each.health.hopeless or not each.health.reported)
    former = tuple(each for each in condemned if each not in useless)
    ranks = Ranks(counted=counted, former=former, useless=useless)
    if not former:
        return ranks
    rejecting = tuple(each for each in former if rejection_of(each.machine))
    if rejecting and (fault := config_fault([each.machine for each in alive], now, timings)):
        counted, former = (*counted, *rejecting), tuple(each for each in former if each not in rejecting)
        ranks = ranks.model_copy(update={"counted": counted, "former": former, "hold": fault})
    if not (former and fleet.silent):
        return ranks
    # Reports of another set's machines do not wake this set, so it decides again by itself.
    silent = {"hold": fleet.hold, "retained": True, "look_again": now + timings.window}
    if fleet.scout != f"{machine_set.metadata.namespace}/{machine_set.metadata.name}":
        silent.update(counted=(*counted, *former), former=())
    return ranks.model_copy(update=silent)


def replaced(ranks: Ranks, wanted: int, *, quota_refused: bool) -> list[MachineReadiness]:
    number = len(ranks.former) - wanted
    if not ranks.retained:
        number = max(number + len(ranks.counted), 1 if quota_refused else 0)
    ranked = sorted(ranks.former, key=lambda each: (is_master(each.machine), age(each.machine)))
    return ranked[: max(0, number)]
