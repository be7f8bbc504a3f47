"""The watcher: turns every change of a watched object into a wake of the lifecycles it concerns.

    API server ──list, watch──► reflector.py (one per kind) ──► index.py, projection.py ──► queue.py ──wake──► Temporal
                                                                  who is concerned: relations.py, <area>.py

It has one verb, `engine.temporal.wake`, and decides nothing. Whatever goes wrong with the streams, Temporal or the
process itself, for every object the wake after its last change is sent in the end; one too many does no harm. `main.py`
is the process, `watcher.py` what is woken when, `kinds.py` the table that areas join.

What its service account must be allowed (verbs list and watch where nothing else is said; `deploy/rbac` grants it):

| resource | namespace | why |
|---|---|---|
| accountpools, accounts, accountclaims of aws.managed.openshift.io | all | the lifecycles |
| configmaps, by the name aws-account-operator-configmap | aws-account-operator | configuration |
| secrets, by the name aws-account-operator-credentials | aws-account-operator | a hash of it |
| resourceclaims, and namespaces | all | the lifecycles, who asked for them |
| resourcehandles, resourcepools, resourcepoolscalings, resourceproviders | OPERATOR_NAMESPACE | them too |
| resourcewatches: get, list, create, patch | OPERATOR_NAMESPACE | a view of what is watched |
| every kind that handles manage | all | their state |
| leases of coordination.k8s.io: get, create, update | the Lease's own | leader election, the checkpoint |

Kubernetes allows list and watch by resourceNames only for requests whose field selector is metadata.name=NAME, which is
how these two are watched.
"""
