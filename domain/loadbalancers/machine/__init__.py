"""A machine's life, and what it is given at birth: rights on the API server, and the user data that its image runs by.

| file | says |
|---|---|
| `lifecycle.py` | what to do for a machine now, by `world.py` |
| `actions.py` | what its lifecycle does beside the steps in the cloud (`cloud/steps.py`) |
| `access.py` | its Kubernetes objects and its kubeconfig |
| `user_data.py` | the cloud-config; `keepalived.py` and `promtail.py`: two of the files in it |
"""
