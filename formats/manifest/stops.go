package manifest

// Stops holds the hosts and registered domains that a person stopped: they get no requests. A nil
// *Stops holds none.
type Stops struct {
	hosts, domains map[string]string // reason by name
}

// Stop adds the host, or the registered domain if host is "". reason must not be "".
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

// Reason returns the reason why a host is stopped, or "" if it is not. host is written as in the
// tables, and domain is its registered domain.
func (s *Stops) Reason(host, domain string) string {
	if s == nil {
		return ""
	}
	if why := s.hosts[host]; why != "" {
		return why
	}
	return s.domains[domain]
}
