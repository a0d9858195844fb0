package manifest

// Stops tells which hosts get no requests, because a person stopped them. A nil *Stops stops
// nothing.
type Stops struct {
	hosts, domains map[string]string // reason by name
}

// Stop adds a host, or a registered domain if host is "".
func (s *Stops) Stop(host, domain, reason string) {
	if s.hosts == nil {
		s.hosts, s.domains = map[string]string{}, map[string]string{}
	}
	if host != "" {
		s.hosts[host] = reason
	} else {
		s.domains[domain] = reason
	}
}

// Reason returns the reason why a host, as in the tables, of a registered domain is stopped. It
// returns "" if the host is not stopped.
func (s *Stops) Reason(host, domain string) string {
	if s == nil {
		return ""
	}
	if why := s.hosts[host]; why != "" {
		return why
	}
	return s.domains[domain]
}
