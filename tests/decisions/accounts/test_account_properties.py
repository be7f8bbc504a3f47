"""What holds of the decisions from any state, however it came about: they settle, write nothing twice, create once.

The last part is a small world of its own: a pool, an organization and claims whose objects come, fail, vanish and are
edited by people in any order, every step decided by the real decisions. What must never happen is checked after each.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from account_objects import (
    ANSWERS,
    AWS_ID,
    NAME,
    NOW,
    REGIONS,
    account,
    activities,
    ago,
    claim,
    claim_world,
    condition,
    config,
    decide_any,
    first_of_each_slot,
    fold,
    free,
    pool,
    settle,
    world,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from domain.accounts.account_lifecycle import decide
from domain.accounts.actions.account_creation import CreateAccount
from domain.accounts.actions.handover import Release, ReleaseAccount
from domain.accounts.constants import FINALIZER
from domain.accounts.creation_permits import judge
from domain.accounts.naming import email_of
from domain.accounts.observed import (
    AccountMemory,
    AccountWorld,
    ClaimMemory,
    ClaimWorld,
    Permit,
    RegionOutcome,
    Verdict,
)
from domain.accounts.organization import Budget, Census, CreateAttempt, MemberAccount
from domain.accounts.pool import PoolView, Room, count, supply, waits
from domain.accounts.pool import decide as decide_pool
from domain.accounts.resources import Account, AccountClaim
from domain.decision import Outcome, World
from domain.refusal import ErrorType, Refusal
from domain.resource import timestamp
from domain.writes import Patch, patched

STATES = ["", "Creating", "InitializingRegions", "PendingVerification", "Ready", "Failed", "InternalError"]
MOMENTS = st.sampled_from(
    [ago(seconds=0), ago(minutes=24), ago(minutes=26), ago(minutes=52), ago(days=400), "soon", ""]
)


@st.composite
def statuses(draw: st.DrawFn) -> dict[str, Any]:
    types = draw(st.lists(st.sampled_from([*STATES[1:], "Claimed", "Pending", "Reused"]), unique=True, max_size=5))
    conditions = [
        condition(type_, entered=draw(MOMENTS), status=draw(st.sampled_from(["True", "True", "False"])))
        for type_ in types
    ]
    return {
        "state": draw(st.sampled_from(STATES)),
        "claimed": draw(st.booleans()),
        "reused": draw(st.booleans()),
        "supportCaseID": draw(st.sampled_from(["", "case-1"])),
        "conditions": conditions,
    }


@st.composite
def account_worlds(draw: st.DrawFn) -> AccountWorld:
    """Anything that people, tools and earlier lives may leave."""
    token = draw(st.sampled_from(["", "1"]))
    holder = draw(st.sampled_from([None, "claim"]))
    meta = {
        "finalizers": draw(st.sampled_from([[], [FINALIZER], [FINALIZER, "other"], ["other"]])),
        "labels": draw(st.sampled_from([{}, {"iamUserId": "bcd456"}])),
        "annotations": {"perdure.dev/retry": token} if token else {},
        "creationTimestamp": draw(st.sampled_from([ago(minutes=1), ago(days=2)])),
        **({"deletionTimestamp": ago(seconds=5)} if draw(st.booleans()) and draw(st.booleans()) else {}),
    }
    if "deletionTimestamp" in meta and not meta["finalizers"]:
        meta["finalizers"] = [FINALIZER]
    spec = {
        "awsAccountID": draw(st.sampled_from(["", AWS_ID])),
        "iamUserSecret": draw(st.sampled_from(["", f"{NAME}-secret"])),
        **({"claimLink": holder, "claimLinkNamespace": "tenant"} if holder else {}),
    }
    known = AccountMemory(
        inherited=draw(st.booleans()),
        permit=draw(st.sampled_from([None, Permit(verdict=Verdict.GRANTED, until=NOW + timedelta(minutes=2))])),
        request_id=draw(st.sampled_from(["", "car-1"])),
        created_account_id=draw(st.sampled_from(["", AWS_ID])),
        failure=draw(st.sampled_from(["", "ACCOUNT_LIMIT_EXCEEDED", "INVALID_EMAIL"])),
        admin_secret=draw(st.sampled_from(["", f"{NAME}-secret"])),
        regions=draw(st.sampled_from([None, REGIONS, ()])),
        outcomes=draw(st.sampled_from([{}, {REGIONS[0]: RegionOutcome(region=REGIONS[0], ok=False)}])),
        case_id=draw(st.sampled_from(["", "case-1"])),
        resolved_case=draw(st.sampled_from(["", "case-1"])),
    )
    found = world(
        account(meta=meta, spec=spec, status=draw(statuses())),
        claim=claim() if holder and draw(st.booleans()) else None,
    )
    return found.model_copy(update={"known": known, "refusals": draw(refusals())})


def refusals() -> st.SearchStrategy[dict[str, Refusal]]:
    slots = st.sampled_from(
        ["aws.create_account", "aws.ensure_admin_user", "aws.delete_identities", "aws.list_regions"]
    )
    kinds = st.sampled_from([ErrorType.INVALID, ErrorType.DENIED, ErrorType.BUG, ErrorType.ABSENT])
    made = st.builds(
        Refusal, type=kinds, message=st.just("no"), code=st.just(""), at=st.just(NOW), attempts=st.integers(1, 5)
    )
    return st.dictionaries(slots, made, max_size=2)


@st.composite
def claim_worlds(draw: st.DrawFn) -> ClaimWorld:
    deleting = draw(st.booleans())
    finalizers = draw(st.sampled_from([[FINALIZER], [FINALIZER, "other"], ["other"], []]))
    meta = {
        "finalizers": finalizers or ([FINALIZER] if deleting else []),
        "annotations": draw(st.sampled_from([{}, {"perdure.dev/retry": "1"}])),
        **({"deletionTimestamp": ago(seconds=5)} if deleting else {}),
    }
    spec = {
        "accountLink": draw(st.sampled_from(["", NAME])),
        "accountOU": draw(st.sampled_from(["", "ROOT", "ou-1"])),
        "legalEntity": {"id": draw(st.sampled_from(["", "entity-1"])), "name": ""},
        "awsCredentialSecret": {"name": "aws", "namespace": draw(st.sampled_from(["tenant", "elsewhere", ""]))},
        "aws": {"regions": draw(st.sampled_from([[], [{"name": "us-east-1"}, {"name": "eu-west-1"}]]))},
    }
    state = draw(st.sampled_from(["", "Pending", "Ready", "Error", "Failed"]))
    link = draw(st.sampled_from(["", "claim", "other"]))
    held = account(
        spec={"awsAccountID": AWS_ID, "iamUserSecret": "s", "claimLink": link, "claimLinkNamespace": "tenant"},
        status=draw(statuses()),
    )
    return claim_world(
        claim(meta=meta, spec=spec, status={"state": state, "conditions": []}),
        account=draw(st.sampled_from([None, held])),
        known=ClaimMemory(keys_rotated=draw(st.booleans())).model_dump(),
    )


WORLDS = st.one_of(account_worlds(), claim_worlds())


@given(WORLDS)
def test_every_decision_is_explained_and_names_what_it_waits_for(start: World) -> None:
    decision = decide_any(start, NOW)
    assert decision.why
    assert decision.phase
    if decision.outcome is Outcome.WAITING:
        assert decision.waits_for
    if decision.outcome is Outcome.WORKING:
        assert decision.actions
    if decision.deadline:
        assert decision.deadline > NOW
        assert decision.at_deadline


@given(WORLDS)
def test_no_write_repeats_what_the_object_already_says(start: World) -> None:
    resource = start.account if isinstance(start, AccountWorld) else start.claim  # type: ignore[attr-defined]
    for action in decide_any(start, NOW).actions:
        if isinstance(action, Patch):
            assert patched(resource, action.patch, "") != resource, action.note


@given(WORLDS)
def test_from_any_state_everything_settles_when_the_world_is_faithful(start: World) -> None:
    after = settle(start)
    assert decide_any(after, NOW).actions == ()


@given(WORLDS, st.data())
def test_from_any_state_everything_settles_after_whatever_was_refused(start: World, data: st.DataObject) -> None:
    """Refusals come for a while, in any place; then the world is faithful again."""
    current = start
    for _ in range(data.draw(st.integers(0, 8))):
        wanted = first_of_each_slot(decide_any(current, NOW))
        if not wanted:
            break
        action = data.draw(st.sampled_from(wanted))
        kind = data.draw(
            st.sampled_from([None, ErrorType.DENIED, ErrorType.INVALID, ErrorType.CONFLICT, ErrorType.BUG])
        )
        if kind is None:
            current = fold(current, action, ANSWERS[action.activity](action))
        else:
            code = data.draw(st.sampled_from(["", "AccessDenied", "INTERNAL_FAILURE", "ACCOUNT_LIMIT_EXCEEDED"]))
            current = fold(current, action, Refusal(type=kind, message="no", code=code, at=NOW))
    settle(current)


@given(account_worlds(), st.permutations(range(8)))
def test_the_order_in_which_answers_arrive_does_not_matter(start: AccountWorld, order: list[int]) -> None:
    wanted = first_of_each_slot(decide(start, NOW))
    if any(action.activity.startswith("kube.") for action in wanted):
        return  # a write is followed by a decision of its own
    shuffled = [wanted[index] for index in order if index < len(wanted)]
    ends = []
    for sequence in (wanted, shuffled):
        current: AccountWorld = start
        for action in sequence:
            current = fold(current, action, ANSWERS[action.activity](action))
        ends.append(settle(current).account)
    assert ends[0].status == ends[1].status
    assert ends[0].spec == ends[1].spec


@given(account_worlds())
def test_one_life_asks_aws_for_an_account_at_most_once(start: AccountWorld) -> None:
    requested = 0
    current = start
    for _ in range(60):
        wanted = first_of_each_slot(decide(current, NOW))
        if not wanted:
            break
        for action in wanted:
            requested += isinstance(action, CreateAccount)
            current = fold(current, action, ANSWERS[action.activity](action))
    assert requested <= 1


@given(account_worlds())
def test_nothing_is_asked_of_aws_for_a_protected_account(start: AccountWorld) -> None:
    guarded = start.model_copy(update={"protected": (AWS_ID,)})
    if not guarded.account.spec.aws_account_id:
        return
    assert not [name for name in activities(decide(guarded, NOW)) if name.startswith("aws.")]


# --- a pool, an organization and their claims ---

LIMIT, ACTIVE, SIZE, IN_FLIGHT, BUDGET = 9, 3, 3, 2, 8
SMALL = config(account_limit=str(LIMIT))


class Provisioning(RuleBasedStateMachine):
    """The area as a whole, one decision at a time in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.accounts: dict[str, Account] = {}
        self.claims: dict[str, AccountClaim] = {}
        self.known: dict[str, AccountMemory] = {}
        self.claims_known: dict[str, ClaimMemory] = {}
        self.members = [
            MemberAccount(id=f"{i:012}", name=f"m{i}", email=f"m{i}@x", state="ACTIVE") for i in range(ACTIVE)
        ]
        self.attempts: list[CreateAttempt] = []
        self.reasons: dict[str, str] = {}
        self.granted: dict[str, datetime] = {}
        self.room: Room | None = None
        self.passes = 0
        self.serial = 0

    @initialize()
    def counted(self) -> None:
        self.organization_passes()

    # the writers

    @rule()
    def pool_passes(self) -> None:
        self.passes += 1
        view = PoolView(
            pool=pool(size=SIZE),
            accounts=tuple(self.accounts.values()),
            claims=tuple(c for c in self.claims.values() if waits(c, pool(), SMALL)),
            config=SMALL,
            room=self.room,
            in_flight_limit=IN_FLIGHT,
            token=str(self.passes),
        )
        decision = decide_pool(view, self.now)
        before = supply(count(view.pool, view.accounts, self.room), view.accounts)
        assert supply(decision.status, view.accounts) == before + len(decision.create) <= max(SIZE, before)
        unborn = [a for a in view.accounts if not a.spec.aws_account_id and not a.failed and not a.metadata.deleting]
        assert len(unborn) + len(decision.create) <= max(IN_FLIGHT, len(unborn))
        for new in decision.create:
            assert new.name not in self.accounts
            self.accounts[new.name] = account(
                new.name, meta={"creationTimestamp": timestamp(self.now), "labels": {"iamUserId": new.iam_user_id}}
            )
            self.known[new.name] = AccountMemory(inherited=False)
        for binding in decision.bind:
            name, holder = binding.account.metadata.name, binding.claim
            if not binding.complete:
                assert self.accounts[name].spec.claim_link == ""
                before = self.accounts[name].spec
                assert before.legal_entity.id in {"", holder.spec.legal_entity.id}
                spec = before.model_copy(
                    update={
                        "claim_link": holder.metadata.name,
                        "claim_link_namespace": holder.metadata.namespace,
                        "legal_entity": holder.spec.legal_entity,
                    }
                )
                self.accounts[name] = self.accounts[name].model_copy(update={"spec": spec})
            if self.serial % 3:  # sometimes the process dies between the two writes
                linked = holder.spec.model_copy(update={"account_link": name})
                self.claims[holder.metadata.name] = holder.model_copy(update={"spec": linked})
            self.serial += 1

    @rule()
    def organization_passes(self) -> None:
        since = self.now - timedelta(hours=1)
        seen = tuple(a for a in self.attempts if a.requested_at >= since or a.state == "IN_PROGRESS")
        found = judge(
            list(self.accounts.values()),
            [pool()],
            SMALL,
            Census(taken_at=self.now, accounts=tuple(self.members), attempts=seen),
            self.granted,
            Budget(in_flight=IN_FLIGHT, number=BUDGET),
            "redhat.com",
            self.now,
        )
        self.granted, self.room = found.granted, found.room
        for name, permit in found.permits.items():
            known = self.known[name]
            facts: dict[str, object] = {"permit": permit}
            if permit.account_id and not known.created_account_id:
                facts["created_account_id"] = permit.account_id
            if permit.request_id and not known.request_id:
                facts["request_id"] = permit.request_id
            self.known[name] = known.model_copy(update=facts)

    @precondition(lambda self: self.accounts)
    @rule(data=st.data(), outcome=st.sampled_from(["ok", "ok", "ok", "INTERNAL_FAILURE", "EMAIL_ALREADY_EXISTS"]))
    def account_acts(self, data: st.DataObject, outcome: str) -> None:
        self.account_step(data.draw(st.sampled_from(sorted(self.accounts))), outcome)

    def account_step(self, name: str, outcome: str) -> None:
        of = self.accounts[name]
        holder = self.claims.get(of.spec.claim_link)
        seen = AccountWorld(
            key=of.key, account=of, config=SMALL, claim=holder, email_domain="redhat.com", known=self.known[name]
        )
        for action in first_of_each_slot(decide(seen, self.now)):
            seen = fold(seen, action, self.answer(action, outcome))
            if not seen.exists:
                del self.accounts[name], self.known[name]
                return
        self.accounts[name], self.known[name] = seen.account, seen.known

    def answer(self, action: Any, outcome: str) -> Any:
        if action.activity == "aws.create_account":
            return self.create(action)
        if action.activity == "aws.await_account":
            return self.await_(action, outcome)
        if action.activity == "aws.ensure_admin_user" and outcome != "ok":
            return Refusal(type=ErrorType.DENIED, message="no", code="AccessDenied", at=self.now)
        if action.activity == "aws.open_support_case":
            known = self.known[action.name]
            self.known[action.name] = known.model_copy(update={"resolved_case": "case-1"})
        return ANSWERS[action.activity](action)

    def create(self, action: CreateAccount) -> Any:
        from domain.accounts.actions.account_creation import CreateRequest

        assert self.now < action.until
        self.serial += 1
        for attempt in self.attempts:
            if action.search and attempt.name == action.name and attempt.state == "IN_PROGRESS":
                return CreateRequest(request_id=attempt.request_id)
        for member in self.members:
            if action.search and member.name == action.name:
                return CreateRequest(created_account_id=member.id)
        request = CreateAttempt(
            name=action.name, request_id=f"car-{self.serial}", state="IN_PROGRESS", requested_at=self.now
        )
        self.attempts.append(request)
        return CreateRequest(request_id=request.request_id)

    def await_(self, action: Any, outcome: str) -> Any:
        from domain.accounts.actions.account_creation import CreatedAccount

        attempt = next(a for a in self.attempts if a.request_id == action.request_id)
        if attempt.state == "IN_PROGRESS":
            id_ = f"{1000 + self.serial:012}"
            state = "SUCCEEDED" if outcome == "ok" else "FAILED"
            ended = attempt.model_copy(update={"state": state, "account_id": id_ if outcome == "ok" else ""})
            self.attempts[self.attempts.index(attempt)] = attempt = ended
            self.reasons[attempt.request_id] = outcome
            self.serial += 1
            if outcome == "ok":
                email = email_of(attempt.name, "redhat.com")
                self.members.append(MemberAccount(id=id_, name=attempt.name, email=email, state="ACTIVE"))
        if attempt.state == "FAILED":
            return Refusal(type=ErrorType.INVALID, message="failed", code=self.reasons[attempt.request_id], at=self.now)
        return CreatedAccount(created_account_id=attempt.account_id)

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def claim_acts(self, data: st.DataObject) -> None:
        self.claim_step(data.draw(st.sampled_from(sorted(self.claims))))

    def claim_step(self, name: str) -> None:
        of = self.claims[name]
        linked = self.accounts.get(of.spec.account_link)
        if linked is None and of.metadata.deleting and not of.spec.account_link:
            linked = next((a for a in self.accounts.values() if a.spec.claim_link == name), None)
        seen = ClaimWorld(key=of.key, claim=of, account=linked, config=SMALL, known=self.claims_known[name])
        for action in first_of_each_slot(decide_any(seen, self.now)):
            if isinstance(action, ReleaseAccount) and linked is not None:
                self.accounts[linked.metadata.name] = free(linked, failed=action.how is Release.FAILED)
            seen = fold(seen, action, ANSWERS[action.activity](action))
        if not seen.exists:
            del self.claims[name], self.claims_known[name]
            return
        self.claims[name], self.claims_known[name] = seen.claim, seen.known

    @rule(rounds=st.integers(1, 4), outcome=st.sampled_from(["ok", "ok", "INTERNAL_FAILURE"]))
    def everybody_works_for_a_while(self, rounds: int, outcome: str) -> None:
        for _ in range(rounds):
            self.pool_passes()
            self.organization_passes()
            for name in sorted(self.accounts):
                for _ in range(4):
                    if name in self.accounts:
                        self.account_step(name, outcome)
            for name in sorted(self.claims):
                for _ in range(3):
                    if name in self.claims:
                        self.claim_step(name)

    # the users

    @precondition(lambda self: len(self.claims) < 4)
    @rule(entity=st.sampled_from(["e1", "e2"]))
    def claim_appears(self, entity: str) -> None:
        self.serial += 1
        name = f"claim-{self.serial}"
        self.claims[name] = claim(name, spec={"legalEntity": {"id": entity, "name": entity}})
        self.claims_known[name] = ClaimMemory()

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def claim_is_deleted(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.claims)))
        of = self.claims[name]
        if not of.metadata.deleting:
            self.claims[name] = of.model_copy(
                update={"metadata": of.metadata.model_copy(update={"deletion_timestamp": self.now})}
            )

    @precondition(lambda self: self.accounts)
    @rule(data=st.data(), edit=st.sampled_from(["", "", "Failed", "Ready", "deleted", "shredded", "forgotten"]))
    def person_edits_an_account(self, data: st.DataObject, edit: str) -> None:
        name = data.draw(st.sampled_from(sorted(self.accounts)))
        of = self.accounts[name]
        if edit == "forgotten":  # the workflow is terminated; another finds the object as it is
            fresh = AccountWorld(key=of.key, account=of).recall(AccountWorld(key=of.key))
            self.known[name] = fresh.known
            return
        if edit == "deleted":
            meta = of.metadata.model_copy(update={"deletion_timestamp": self.now})
            self.accounts[name] = of.model_copy(update={"metadata": meta})
            return
        if edit == "shredded" and (of.spec.claim_link or not of.failed):
            return
        status = Account().status if edit == "shredded" else of.status.model_copy(update={"state": edit})
        changed = of.model_copy(update={"status": status})
        before = AccountWorld(key=of.key, account=of, known=self.known[name])
        self.known[name] = AccountWorld(key=of.key, account=changed).recall(before).known
        self.accounts[name] = changed

    @rule()
    def a_case_is_resolved(self) -> None:
        self.known = {name: known.model_copy(update={"resolved_case": "case-1"}) for name, known in self.known.items()}

    @rule(minutes=st.sampled_from([1, 3, 26, 61]))
    def time_passes(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

    # what must never happen

    @invariant()
    def the_organization_stays_within_its_limit(self) -> None:
        creating = sum(a.state == "IN_PROGRESS" for a in self.attempts)
        assert sum(m.active for m in self.members) + creating <= LIMIT

    @invariant()
    def the_budget_and_the_places_in_flight_hold(self) -> None:
        recent = [a for a in self.attempts if a.requested_at > self.now - timedelta(hours=1)]
        assert len(recent) <= BUDGET
        assert sum(a.state == "IN_PROGRESS" for a in self.attempts) <= IN_FLIGHT

    @invariant()
    def no_account_is_created_twice(self) -> None:
        names = [m.name for m in self.members]
        assert len(names) == len(set(names))
        held = [a.spec.aws_account_id for a in self.accounts.values() if a.spec.aws_account_id]
        assert len(held) == len(set(held))

    @invariant()
    def an_account_has_one_claim_and_a_claim_one_account(self) -> None:
        # A deleted claim names its account for a moment longer than that names the claim: another may have it by then.
        living = [c.spec for c in self.claims.values() if not c.metadata.deleting]
        links = [spec.account_link for spec in living if spec.account_link]
        assert len(links) == len(set(links))
        holders = [a.spec.claim_link for a in self.accounts.values() if a.spec.claim_link]
        assert len(holders) == len(set(holders))

    @invariant()
    def a_ready_claims_account_names_it(self) -> None:
        for name, of in self.claims.items():
            if of.status.state == "Ready" and of.spec.account_link in self.accounts and not of.metadata.deleting:
                assert self.accounts[of.spec.account_link].spec.claim_link == name
                assert self.accounts[of.spec.account_link].spec.legal_entity.id == of.spec.legal_entity.id


Provisioning.TestCase.settings = settings(max_examples=60, stateful_step_count=60)
TestProvisioning = Provisioning.TestCase
