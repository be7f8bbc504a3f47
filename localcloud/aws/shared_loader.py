"""Shares one loader among botocore's sessions; must be imported before moto.

moto's import opens three sessions to list EC2's regions. Each would read botocore's endpoints and EC2's model (0.4 s).
"""

from __future__ import annotations

from functools import cache

import botocore.session

botocore.session.create_loader = cache(botocore.session.create_loader)
