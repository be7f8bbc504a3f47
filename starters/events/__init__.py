"""The event consumer: takes EC2's events out of SQS and hands each to the workflow of its instance.

    SQS ──► consumer.py ── parse ──► teller.py ── update-with-start ──► workflow: records, labels
     ▲       (one per queue)            ▲                                    │
     │                                  │ whose instance is it?              │ outcome of each event
     │ delete, keep, dead letter        index.py ◄── AWSMachines, pools      │
     └──────── acknowledgement ◄─────────────────────────────────────────────┘

A message is deleted once each of its events is recorded in its workflow and the label that follows is written or
proven needless (`domain/instances/acknowledgement.py`); what follows then, be it a drain of two days, is the
workflow's. Whatever goes wrong before, SQS shows the message again: the outside is at-least-once, and workflows
recognise an event that they were told of. So several consumers may run and any may be killed, without a leader.

| file | says |
|---|---|
| `main.py` | the process |
| `consumer.py` | one queue: receiving, what becomes of each message, stopping |
| `in_work.py`, `batches.py` | messages that stay out of others' sight while in work; calls of ten |
| `teller.py`, `temporal.py` | one hand-over per instance at a time, the most urgent first |
| `index.py` | which instances are somebody's |
| `queues.py` | SQS |
| `library.py` | the two functions of the AWS provider's decision record: get an event, is an event processed |
| `dead_letters.py` | listing and re-driving what could not be read |
| `metrics.py` | numbers |
"""
