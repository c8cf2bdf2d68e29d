"""Small controllers: workloads, nodes, garbage, volumes. `manager.ControllerManager` runs them all."""
