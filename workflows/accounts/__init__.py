"""AWS account pools in time: one workflow per Account, AccountClaim and AccountPool, and one for the organization."""
