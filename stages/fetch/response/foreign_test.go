package response

import (
	"slices"
	"testing"

	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

func replayed(t *testing.T, block string) *wire.Exchange {
	t.Helper()
	x, err := ReplayForeign([]byte(block), &warc.Summary{}, false, wire.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Release)
	return x
}

func TestA304ReplacesOnlyFieldsThatDoNotDescribeTheContent(t *testing.T) {
	stored := replayed(t, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: \"1\"\r\nX-Robots-Tag: noindex\r\nx-robots-tag: nofollow\r\nServer: a\r\n\r\nbody")
	answer := replayed(t, "HTTP/1.1 304 Not Modified\r\nContent-Type: text/plain\r\nContent-Length: 0\r\netag: \"2\"\r\nX-Robots-Tag: none\r\nVary: a\r\nVary: b\r\n\r\n")
	Freshen(stored, answer)
	var got []string
	for _, f := range stored.Header {
		got = append(got, f.Name+": "+f.Value)
	}
	if want := []string{"Content-Type: text/html", "Server: a", `etag: "2"`, "X-Robots-Tag: none", "Vary: a", "Vary: b"}; !slices.Equal(got, want) || stored.Status != 200 {
		t.Errorf("%d %q, want %q", stored.Status, got, want)
	}
}

// FuzzReplayRevisit replays revisits with any block. The payload is always that of the other record.
func FuzzReplayRevisit(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"), []byte("HTTP/1.1 200 OK\r\n\r\nbody"))
	f.Add([]byte("HTTP/1.0 304\nContent-Encoding: gzip"), []byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"))
	f.Add([]byte(""), []byte("HTTP/1.1 404 Not Found\r\n\r\n"))
	f.Fuzz(func(t *testing.T, block, original []byte) {
		x, err := ReplayForeign(original, &warc.Summary{}, false, wire.Limits{})
		defer x.Release()
		if err != nil {
			return
		}
		y, ok := ReplayRevisit(block, x, false, wire.Limits{})
		if !ok {
			return
		}
		defer y.Release()
		if y.PayloadDigest != x.PayloadDigest || string(y.Payload) != string(x.Payload) {
			t.Errorf("%q has the payload %q, not %q", block, y.Payload, x.Payload)
		}
		Freshen(x, y)
	})
}
