"""Statistical methods as pure functions of values; one family of methods a file. They import nothing of twinbed's."""
