"""A machine's life, and what it is given at birth: rights on the API server, and the user data that its image runs by.

`lifecycle.py` says what to do for a machine now, `access.py` has its Kubernetes objects and the kubeconfig,
`user_data.py` the cloud-config, `keepalived.py` and `promtail.py` two of the files in it.
"""
