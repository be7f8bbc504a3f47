"""The OpenStack side: observation (`objects.py`), comparison with the desired state, and actions (`steps.py`)."""
