"""The watcher: turns every change of a watched object into a wake of the lifecycles it concerns.

    API server ──list, watch──► reflector.py (one per kind) ──► index.py, projection.py ──► queue.py ──wake──► Temporal
                                                                which lifecycles: relations.py, <area>.py

Its only output is `engine.temporal.wake`; it takes no decisions. Whatever fails (a stream, Temporal, the process
itself), every object's lifecycle is eventually woken after the object's last change; a superfluous wake does no harm.
`main.py` is the process, `watcher.py` maps changes to wakes, `kinds.py` is the table that areas join.

The RBAC rights that its service account needs (list and watch unless stated otherwise; `deploy/rbac` grants them):

| resource | namespace | why |
|---|---|---|
| accountpools, accounts, accountclaims of aws.managed.openshift.io | all | the lifecycles |
| configmaps, by the name aws-account-operator-configmap | aws-account-operator | configuration |
| secrets, by the name aws-account-operator-credentials | aws-account-operator | a hash of it |
| resourceclaims, and namespaces | all | the lifecycles, who asked for them |
| resourcehandles, resourcepools, resourcepoolscalings, resourceproviders | OPERATOR_NAMESPACE | the lifecycles |
| resourcewatches: get, list, create, patch | OPERATOR_NAMESPACE | a view of what is watched |
| every kind that handles manage | all | their state |
| leases of coordination.k8s.io: get, create, update | the Lease's own | leader election, the checkpoint |

Kubernetes allows list and watch by resourceNames only for requests whose field selector is metadata.name=NAME, which is
how these two are watched.
"""
