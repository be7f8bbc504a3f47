"""Lets all sessions of botocore share what they read; imported before moto.

While it is imported, moto opens three sessions to ask for EC2's regions. Each would read botocore's list of endpoints,
and EC2's model for nothing but the name of its endpoint: 0.4 s.
"""

from __future__ import annotations

from functools import cache

import botocore.session

botocore.session.create_loader = cache(botocore.session.create_loader)
