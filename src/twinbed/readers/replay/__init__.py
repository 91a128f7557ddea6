"""A capture split into what its clients and what its servers sent, for two hosts to replay."""
