package planner

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/planner/entry"
	"crawlbatch.io/crawlbatch/planner/pace"
	"crawlbatch.io/crawlbatch/planner/pack"
)

// chosenWriter writes a chosenList and counts its groups.
type chosenWriter struct {
	rules *rules
	list  *entry.List
	out   *entry.ListWriter

	cur   pack.Group
	hosts map[string]*hostCount // counts of the current group's URLs by host
	last  *hostCount

	observed *table.Cursor[pace.Observation] // observations of hosts in earlier rounds; nil if there are none
}

type hostCount struct {
	host, domain string
	n            int64
	delay        time.Duration // newest observed delay of the host
	perURL       float64       // newest observed number of requests for each URL, or 0
	latency      time.Duration // newest observed time until a response begins
	answered     bool          // whether latency is known

	observed    bool          // whether a round has requested the host
	unreachable bool          // whether the newest such round could not fetch robots.txt
	requests    int64         // requests of the newest such rounds, without the first of each round
	span        time.Duration // time of these requests
}

func newChosenWriter(r *rules, dir, name string) (*chosenWriter, error) {
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return nil, fmt.Errorf("create scratch file: %w", err)
	}
	return &chosenWriter{rules: r, list: &entry.List{File: f}, out: entry.NewListWriter(f), hosts: map[string]*hostCount{}}, nil
}

// begin starts a group.
func (w *chosenWriter) begin(hash uint64) { w.cur = pack.Group{Hash: hash, Off: w.out.Begin()} }

// put writes a record to the group of the record's hash, and starts the group if necessary.
func (w *chosenWriter) put(u *entry.Record) error {
	if w.cur.URLs == 0 || w.cur.Hash != u.Hash {
		if err := w.endGroup(); err != nil {
			return err
		}
		w.begin(u.Hash)
	}
	return w.add(u)
}

// add writes a record to the current group.
func (w *chosenWriter) add(u *entry.Record) error {
	if err := w.out.Write(u); err != nil {
		return err
	}
	w.cur.URLs++
	if w.last == nil || w.last.host != u.Host {
		h, ok := w.hosts[u.Host]
		if !ok {
			h = &hostCount{host: strings.Clone(u.Host), domain: strings.Clone(u.Domain)} // without the rest of the record
			w.hosts[h.host] = h
		}
		w.last = h
	}
	w.last.n++
	return nil
}

// endGroup closes the current group and adds it to the list of groups if it has URLs.
func (w *chosenWriter) endGroup() error {
	if w.cur.URLs > 0 {
		address, err := w.observe()
		if err != nil {
			return err
		}
		var domains []string
		for _, h := range w.hosts {
			slow := w.rules.slowHost(h)
			w.list.Slowest.Add(slow)
			if h.observed {
				w.list.Observed++
			}
			w.reach(h)
			w.cur.Longest = max(w.cur.Longest, w.rules.pack().WithinWindow(slow.Time().Seconds()))
			if !slices.Contains(domains, h.domain) {
				domains = append(domains, h.domain)
			}
		}
		w.cur.Hosts, w.cur.Domains = int32(len(w.hosts)), int32(len(domains))
		w.list.Groups = append(w.list.Groups, w.cur)
		if w.observed != nil {
			w.list.Addresses = append(w.list.Addresses, address)
		}
	}
	if len(w.hosts) > 1024 {
		w.hosts = map[string]*hostCount{} // makes a new map, because clearing a map that was once large is slow
	} else {
		clear(w.hosts)
	}
	w.cur, w.last = pack.Group{}, nil
	return nil
}

// reach counts how requests would reach a host.
func (w *chosenWriter) reach(h *hostCount) {
	if w.rules.Reach == nil {
		return
	}
	refused, named := w.rules.Reach(h.host)
	if refused {
		w.list.Reach.Refuse(h.host, h.n)
	}
	if named {
		w.list.Reach.Names++
	}
}

// close writes the end of the list, which stays open for reading.
func (w *chosenWriter) close() error { return cmp.Or(w.endGroup(), w.out.Close()) }
