"""Statistical methods as pure functions of arrays; one family of methods a file. They import nothing of twinbed's."""
