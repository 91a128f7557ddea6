"""What gives hosts away, of the instrument ``fingerprint``: nmap's report, HTTP answers, ICMP and ARP, the machine itself."""
