"""The worker is killed at every type of action: before its effect, after it, and with the effect still to come."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from chaos_access_role import access_role_effects
from chaos_customers_effects import customer_effects
from chaos_effects import (
    BINDING_ALONE,
    BOOTING,
    DISCARDING,
    ENDING,
    FINISHING,
    FORGETTING,
    OBSERVING,
    QUEUEING,
    RETURNING,
    TAKING,
    effects,
)
from chaos_federated_effects import federated_effects
from chaos_kills import MODES, Death, Row, activities_of_accounts, cases, kill_at
from chaos_lab import Lab, Record
from chaos_proxy import Break
from chaos_regions import regions_effects

from localcloud.aws.contract import FaultKind

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]


@pytest.mark.chaos
@pytest.mark.turn("take")
@pytest.mark.parametrize(("row", "mode"), cases("take", (*TAKING, OBSERVING)))
def test_an_account_is_made_and_given_although_the_worker_dies(lab: Lab, death: Death) -> None:
    lab.ready_to("take")
    death.amidst(lab.take)


@pytest.mark.chaos
@pytest.mark.turn("give back")
@pytest.mark.parametrize(("row", "mode"), cases("return", RETURNING))
def test_an_account_is_cleaned_and_freed_although_the_worker_dies(lab: Lab, death: Death) -> None:
    lab.ready_to_give_back_twice()
    death.amidst(lab.give_back)


@pytest.mark.chaos
@pytest.mark.turn("take")
@pytest.mark.parametrize(("row", "mode"), cases("finish", FINISHING))
def test_a_claim_finishes_what_its_pool_began_after_two_worker_crashes(
    lab: Lab, record: Record, record_property: Callable[[str, object], None], row: Row, mode: Break
) -> None:
    record(row, f"after its pool's death: {MODES[mode]}")
    lab.ready_to("take")
    lab.take_and_die()
    record_property("seconds", round(kill_at(lab, row, mode, lab.worker.start), 1))


@pytest.mark.chaos
@pytest.mark.turn("take")
@pytest.mark.parametrize(("row", "mode"), cases("alone", BINDING_ALONE))
def test_a_claim_binds_one_account_without_account_pool_although_the_worker_dies(lab: Lab, death: Death) -> None:
    lab.ready_to("take")
    lab.orphan_accounts()
    death.amidst(lab.take)
    lab.adopt_accounts()
    lab.settle()


@pytest.mark.chaos
@pytest.mark.parametrize("mode", MODES)
def test_a_claim_that_finds_no_account_gets_the_next_although_the_worker_dies(
    lab: Lab, record: Record, mode: Break
) -> None:
    record([QUEUEING], MODES[mode])
    lab.ready_to("take")
    lab.take()
    queued = ""

    def queue() -> None:
        nonlocal queued
        queued = lab.queue()

    kill_at(lab, (QUEUEING,), mode, queue)
    lab.dismiss(queued)
    lab.settle()


@pytest.mark.chaos
@pytest.mark.parametrize("mode", MODES)
def test_an_account_that_aws_refuses_gives_way_although_the_worker_dies(lab: Lab, record: Record, mode: Break) -> None:
    record([DISCARDING], MODES[mode])
    lab.ready_to("take")
    lab.emulator.fault(
        "organizations", "CreateAccount", kind=FaultKind.ASYNC_FAILURE, count=1, code="INVALID_PAYMENT_INSTRUMENT"
    )
    kill_at(lab, (DISCARDING,), mode, lab.take)


@pytest.mark.chaos
def test_no_instance_is_left_although_the_worker_dies_while_its_first_one_boots(lab: Lab, record: Record) -> None:
    record([BOOTING], MODES[Break.BEFORE])
    lab.ready_to("take")
    lab.worker.kill()
    lab.worker.start()
    kill_at(lab, (BOOTING,), Break.BEFORE, lab.take)


@pytest.mark.chaos
def test_no_instance_is_left_although_the_worker_dies_after_each_termination(lab: Lab, record: Record) -> None:
    """What proved that the first instance ran dies with the first worker: the second one launches another."""
    record([ENDING, ENDING], MODES[Break.AFTER])
    lab.ready_to("take")
    armed = [lab.arm(ENDING, Break.AFTER)]
    lab.take()
    lab.await_struck(armed)
    lab.worker.kill()
    lab.lift()
    kill_at(lab, (ENDING,), Break.AFTER, lab.worker.start)


@pytest.mark.chaos
@pytest.mark.parametrize("mode", MODES)
def test_no_call_is_made_for_a_deleted_account_although_the_worker_dies(lab: Lab, record: Record, mode: Break) -> None:
    record([FORGETTING], MODES[mode])
    lab.ready_to("take")
    case_id = lab.take_and_wait()
    kill_at(lab, (FORGETTING,), mode, lab.delete_waiting)
    assert [case.status for case in lab.emulator.world().cases if case.id == case_id] == ["resolved"]


def test_every_type_of_action_has_its_moment() -> None:
    swept = (*effects(), *federated_effects(), *regions_effects(), *customer_effects(), *access_role_effects())
    assert {effect.activity for effect in swept} == activities_of_accounts()


def test_a_key_that_was_made_when_the_worker_died_is_not_left_alive(lab: Lab) -> None:
    """What the default run holds of all this."""
    lab.ready_to("give back")
    rotate = next(effect for row in RETURNING for effect in row if effect.activity == "aws.rotate_keys")
    kill_at(lab, (rotate,), Break.AFTER, lab.give_back)
