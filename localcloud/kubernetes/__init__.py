"""The local control plane: its programs, certificates and command lines."""
