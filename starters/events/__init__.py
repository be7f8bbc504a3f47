"""The event consumer: takes EC2's events out of SQS and hands each to the workflow of its instance.

    SQS ──► consumer.py ── parse ──► teller.py ── update-with-start ──► workflow: records, labels
     ▲       (one per queue)            ▲                                    │
     │                                  │ which object has it?               │ outcome of each event
     │ delete, keep, dead letter        index.py ◄── AWSMachines, pools      │
     └──────── acknowledgement ◄─────────────────────────────────────────────┘

A message is deleted once each of its events is recorded in its workflow and the resulting label is written, or found
unnecessary (`domain/instances/acknowledgement.py`). Everything after that, even a drain of two days, is up to the
workflow. If anything fails before, SQS delivers the message again: delivery is at-least-once, and workflows recognise
an event that they have already received. So several consumers may run and any may be killed, without a leader.

| file | contents |
|---|---|
| `main.py` | the process |
| `consumer.py` | one queue: receiving, what becomes of each message, stopping |
| `in_work.py`, `batches.py` | messages that stay invisible to others while in work; calls of ten |
| `teller.py`, `temporal.py` | one hand-over per instance at a time, the most urgent first |
| `index.py` | the instances that objects in the cluster have |
| `queues.py` | SQS |
| `library.py` | the two functions of the AWS provider's decision record: get an event, is an event processed |
| `dead_letters.py` | listing and re-driving what could not be read |
| `metrics.py` | metrics |
"""
