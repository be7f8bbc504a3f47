"""The AWS of the local deployment: moto's server in a process of its own, made to behave where it matters like AWS.

`python -m localcloud.aws --host 127.0.0.1 --port P --state FILE [--config FILE]` serves every AWS API that moto
knows on one port, plus a control API under `/perdure/`. What moto 5.2.5 lacks is added by one module per service:
`organizations`, `support`, `service_quotas`, `account`, `ec2` with the `lives` of its instances, `autoscaling`, `sqs`,
`identity` (IAM and STS). What EC2 and Auto Scaling tell goes by the `bus` in the shapes of `happenings`, what happens
later waits in the `pump`, what AWS announces of instances is in `notices`. In front of moto stands `server`, which
names each call (`wire`), refuses keys nobody issued (`identity`), counts it (`ledger`), disturbs it on request
(`faults`) and remembers which state it touched (`persistence`). `control` is the typed client for all that; `contract`
and `events_contract` hold the shapes both sides share.
"""
