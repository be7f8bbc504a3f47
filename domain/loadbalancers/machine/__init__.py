"""What a machine is given at birth: its rights on the API server, and the user data that its image runs by.

`access.py` has the Kubernetes objects and the kubeconfig, `user_data.py` the cloud-config, `keepalived.py` and
`promtail.py` two of the files in it.
"""
