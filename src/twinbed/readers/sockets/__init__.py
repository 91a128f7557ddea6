"""What ``twinbed-probe sockets`` writes (crates/probe/SOCKETS.md), read: samples of TCP sockets."""
