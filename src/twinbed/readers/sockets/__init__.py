"""What ``twinbed-probe sockets`` writes (docs/probe/SOCKETS.md), read: samples of TCP sockets."""
