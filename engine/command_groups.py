from __future__ import annotations

from typing import Final

TRY: Final = "Try it on this computer"
LOOK: Final = "Look"
ACT: Final = "Act on a lifecycle, an area or everything"
PROCESSES: Final = "Run the processes of an installation"
INSTALL: Final = "Install, upgrade and develop"

ORDER: Final = (TRY, LOOK, ACT, PROCESSES, INSTALL)
