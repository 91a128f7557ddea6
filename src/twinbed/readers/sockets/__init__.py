"""Output of ``twinbed-probe sockets`` (docs/probe/SOCKETS.md): samples of TCP sockets."""
