"""Services of type LoadBalancer: what they request, their status and their Events."""
