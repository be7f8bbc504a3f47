"""The control plane of the local deployment: where its programs come from, its certificates and its command lines."""
