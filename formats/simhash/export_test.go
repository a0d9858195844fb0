package simhash

// SetMemory sets the number of items that a search sorts in memory.
func (s *Search) SetMemory(items int) { s.memory = items }

// ReportEvery makes a search report all pairs instead of a forest.
func (s *Search) ReportEvery() { s.every = true }

// Has reports whether the part has a key.
func (p Part) Has(key uint64) bool { return p.has(key) }
