"""`perdure audit --report`: writes the findings into a ConfigMap (`domain/audit_report.py`).

A scheduled job runs this command, and fails only if an audit could not be made. The watcher exports the findings as
metrics for alerts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from domain.audit_report import CONFIG_MAP_NAME, AreaReport, Found, failed, reported, reports_in
from engine.errors import Absent, ApiError
from engine.kube.errors import NO_SUCH_KIND
from starters.cli.audits import Audit, Finding
from starters.cli.config_maps import read_config_map, write_config_map
from starters.cli.output import warn
from starters.cli.session import Session


async def report(
    session: Session, known: Mapping[str, Audit], *, thorough: bool, now: Callable[[], datetime]
) -> Mapping[str, AreaReport]:
    """Run the audits in sequence, and write each result as soon as its audit is done. Areas whose kinds are not
    installed are left out.
    """
    before = reports_in(await read_config_map(session, CONFIG_MAP_NAME))
    done: dict[str, AreaReport] = {}
    for area, each in known.items():
        try:
            made = reported(now(), found_of(await each(session, thorough=thorough)))
        except Absent as error:
            if error.code == NO_SUCH_KIND:
                warn(f"skipped: {area}, whose kinds are not installed here")
                continue
            made = failed(before.get(area, AreaReport()), error.message)
        except ApiError as error:
            made = failed(before.get(area, AreaReport()), error.message)
        await write_config_map(session, CONFIG_MAP_NAME, {area: made.written()})
        done[area] = made
    return done


def found_of(findings: Sequence[Finding]) -> tuple[Found, ...]:
    return tuple(Found(subject=each.subject, problem=each.problem, advice=each.advice) for each in findings)
