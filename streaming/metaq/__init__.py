"""Shell: MetaQ (Metamorphosis 1.4) clusters, as their ZooKeeper tells of them."""
