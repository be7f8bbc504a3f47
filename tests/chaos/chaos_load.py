"""People at work: claims made, changed and deleted at a steady pace, by a thread beside the test."""

from __future__ import annotations

import itertools
import random
import threading
import time

from chaos_claims_lab import ClaimsLab

CHANGES_A_SECOND = 20
CLAIMS = 15
"""Of each group; a deleted group is followed by another."""


def new_group(lab: ClaimsLab) -> list[str]:
    """Claims to be changed together."""
    return [lab.claim("chest") for _ in range(CLAIMS)]


class Load(threading.Thread):
    """People who make, change and delete claims, one thing every twentieth of a second."""

    def __init__(self, lab: ClaimsLab, seed: int) -> None:
        super().__init__(name="load")
        self.made = 0
        self.failure: BaseException | None = None
        self._lab = lab
        self._dice = random.Random(seed)
        self._group = new_group(lab)
        self._over = threading.Event()

    def turn_to(self, group: list[str]) -> None:
        """Change nothing any more that has changed so far; these from now on."""
        self._group = group

    def run(self) -> None:
        """Until it is over; one change that takes long makes the next ones come faster."""
        try:
            began = time.monotonic()
            for number in itertools.count(1):
                if self._over.wait(max(0.0, began + number / CHANGES_A_SECOND - time.monotonic())):
                    return
                self._change(self._group)
                self.made = number
        except BaseException as error:
            self.failure = error

    def _change(self, group: list[str]) -> None:
        if self._dice.random() < 0.9:
            self._lab.resize(self._dice.choice(group), str(self._dice.randrange(10**9)))
            return
        self._lab.delete_claim(group.pop(self._dice.randrange(len(group))))
        group.append(self._lab.claim("chest"))

    def end(self) -> None:
        """Stop; what has failed meanwhile comes out."""
        self._over.set()
        self.join()
        if self.failure is not None:
            raise self.failure
