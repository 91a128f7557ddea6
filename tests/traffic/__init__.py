"""Real TCP traffic between two kernels' worth of network namespaces, through a relay that loses, repeats and reorders."""
