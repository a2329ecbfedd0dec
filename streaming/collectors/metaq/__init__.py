"""Shell: MetaQ (Metamorphosis 1.4) clusters, followed through their ZooKeeper."""
