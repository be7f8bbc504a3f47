"""Four lifecycles at once: federated access, a customer's claim, a fleet manager's claim and a fake one.

    come: an access is granted, a customer's account claimed, a fleet manager's claim made
    renew: the access follows its role, beside a fake claim; go: all that has come is taken back

None of them shares an account with another, so one death of the worker tests each.
"""

from __future__ import annotations

from chaos_customers_turns import Customers
from chaos_federated_turns import Federation
from chaos_fleet_turns import FleetManagers
from chaos_lab import Lab


class Crowd:
    """The turns, on one installation."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._federation = Federation(lab)
        self._customers, self._pretenders = Customers(lab), Customers(lab)
        self._fleet = FleetManagers(lab)
        self._here = False

    def begin(self) -> None:
        """A claim whose account the access opens, and an account that fleet managers' claims get again and again."""
        self._lab.oracle.others = [
            turns.violations for turns in (self._federation, self._customers, self._pretenders, self._fleet)
        ]
        self._federation.ready_to_grant()
        self._fleet.begin()
        self._fleet.equip()
        self._lab.agree()
        self._fleet.strip()
        self._lab.agree()

    def end(self) -> None:
        """Nothing of it is left."""
        self.ready_to("come")
        self._lab.oracle.others = []

    def ready_to(self, turn: str) -> None:
        """Take an undisturbed turn where another one's is next."""
        if self._pretenders.name:
            self._pretenders.end()
            self._lab.agree()
        if self._here is (turn == "come"):
            (self.go if self._here else self.come)()
            self._lab.agree()
        self._lab.oracle.forget()

    def come(self) -> None:
        """Have all of it."""
        self._here = True
        self._federation.grant()
        self._customers.bring()
        self._fleet.equip()

    def renew(self) -> None:
        """Change the role, and make a fake claim."""
        self._federation.renew()
        self._pretenders.pretend()

    def go(self) -> None:
        """Have none of it."""
        self._here = False
        self._federation.end()
        self._customers.end()
        self._fleet.strip()
