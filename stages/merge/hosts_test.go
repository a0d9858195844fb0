package merge

import (
	"testing"
	"unsafe"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// All texts of a sorted row share one string. What merge keeps of a host until the end must not keep
// this string in memory.
func TestHostsKeepNoRows(t *testing.T) {
	const row = "a.com|sha256:1|sitemap|https://a.com:443/|com,a:443)/"
	text := string([]byte(row)) // at an address of its own
	host, digest, purpose, url, surt := text[:5], text[6:14], text[15:22], text[23:41], text[42:]
	m := &merger{hosts: newHosts(), ported: map[string]bool{}}
	m.hosts.countFetch(&schema.Fetch{URL: url, SURT: surt, Host: host, Domain: host})
	total := int64(1)
	m.hosts.requested(&schema.Request{URL: url, Host: host, Purpose: schema.Purpose(purpose), RobotsDigest: digest, BytesSent: 1, TotalUS: &total})
	m.notePort(&linkSet{Source: url, SourceSURT: surt})
	m.notePort(&linkSet{Source: url, SourceSURT: surt}) // an assignment to a map would also replace the key
	s := m.hosts.byName["a.com"]
	kept := map[string]string{"host": s.row.Host, "digest": s.effective.digest, "purpose": string(s.lastPurpose)}
	for name := range m.ported {
		kept["host with a port"] = name
	}
	for name, k := range kept {
		at, begin := uintptr(unsafe.Pointer(unsafe.StringData(k))), uintptr(unsafe.Pointer(unsafe.StringData(text)))
		if k == "" || at >= begin && at < begin+uintptr(len(text)) {
			t.Errorf("%s: %q is missing or lies in the row", name, k)
		}
	}
	if len(kept) != 4 || s.effective.digest != "sha256:1" || s.lastPurpose != schema.ForSitemap || !m.ported["a.com"] {
		t.Errorf("kept: %v", kept)
	}
}
