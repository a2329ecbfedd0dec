"""Shell: follows the pods, nodes and workloads of a Kubernetes cluster, and writes what happened as annotations."""
