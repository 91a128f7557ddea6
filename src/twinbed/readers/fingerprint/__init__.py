"""Signs that give hosts away, for the instrument ``fingerprint``: nmap's report, HTTP, ICMP and ARP, the machine itself."""
