package segments

import (
	"fmt"
	"testing"
)

func TestRememberedPayloadsAreBounded(t *testing.T) {
	var m payloads
	for i := range maxPayloads + 10 {
		m.add(Payload{digest: fmt.Sprint(i), url: "first"})
		m.add(Payload{digest: fmt.Sprint(i), url: "second"})
	}
	if len(m.byDigest) != maxPayloads || len(m.ring) != maxPayloads {
		t.Errorf("%d payloads are remembered, want %d", len(m.byDigest), maxPayloads)
	}
	for digest, want := range map[string]bool{"0": false, "9": false, "10": true, fmt.Sprint(maxPayloads + 9): true} {
		if p, ok := m.find(digest); ok != want || ok && p.url != "first" {
			t.Errorf("payload %s: %v, %+v", digest, ok, p)
		}
	}
}
