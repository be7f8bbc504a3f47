"""How many activities of each kind a worker runs at once; further activities wait in their queue.

The calls to a cloud are limited elsewhere: per account, project and tenant (`activities/call_limits.py`).
"""

from __future__ import annotations

KUBERNETES = 50
AWS = 64  # each on a thread of its own
ORGANIZATION = 8
OPENSTACK = 32  # each on a thread of its own
THREESCALE = 200  # they mostly wait for answers
