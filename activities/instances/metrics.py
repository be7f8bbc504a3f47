"""What is done for instances, in numbers.

| metric | labels | counts |
|---|---|---|
| `perdure_instances_labels` | `label` | labels written, by their name |
| `perdure_instances_reactions` | `reaction` | what was done to Machines, Nodes and hooks |
| `perdure_instances_refuted` | | claims of events that AWS did not bear out: mistakes, or somebody forges events |
| `perdure_instances_resync` | `found` | instances that a sweep found to differ from what events had told |
"""

from __future__ import annotations

from prometheus_client import Counter

LABELS = Counter("perdure_instances_labels", "Labels written on AWSMachines and AWSMachinePools.", ["label"])
REACTIONS = Counter("perdure_instances_reactions", "What was done about instances that are taken.", ["reaction"])
REFUTED = Counter("perdure_instances_refuted", "Claims of events that AWS did not bear out.")
RESYNC = Counter("perdure_instances_resync", "Instances that a sweep found to differ from what was known.", ["found"])
