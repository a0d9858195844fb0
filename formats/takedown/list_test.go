package takedown_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/dirstore"
	"crawlbatch.io/crawlbatch/formats/takedown"
)

const secret = "0123456789abcdef0123456789abcdef"

func bucket(t *testing.T) store.Bucket {
	t.Helper()
	b, err := dirstore.Open(t.TempDir(), dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// begun returns a bucket with a list of the given targets, and the list's Guard.
func begun(t *testing.T, urls, domains []string) (store.Bucket, *takedown.Guard) {
	t.Helper()
	b := bucket(t)
	add(t, b, urls, domains, "asked")
	g, err := takedown.Open(t.Context(), b, secret)
	if err != nil {
		t.Fatal(err)
	}
	return b, g
}

func add(t *testing.T, b store.Bucket, urls, domains []string, reason string, counts ...manifest.Count) {
	t.Helper()
	k, err := takedown.NewKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := takedown.Append(t.Context(), b, k, matcher(t, urls, domains), manifest.Takedown{At: "2026-11-26T00:00:00Z", Reason: reason, Counts: counts}); err != nil {
		t.Fatal(err)
	}
}

func TestAGuardRecognizesWhatItsListDoesNotName(t *testing.T) {
	b, g := begun(t, []string{"http://kept.example/~a/gone?x=1", "http://kept.example:8080/p"}, []string{"gone.example", "bücher.example", "[2001:db8::7]", "192.0.2.7"})
	for _, s := range []string{
		"http://gone.example/", "https://a.gone.example:81/x?y", "http://xn--bcher-kva.example/", "http://192.0.2.7:8080/", "http://[2001:db8::7]/", "HTTP://GONE.example./",
		"http://kept.example/~a/gone?x=1", "https://kept.example/~a/gone?x=1", "http://kept.example:443/%7Ea/gone?x=1", "http://kept.example:8080/p",
	} {
		for range 2 { // the second answer is remembered
			if !g.URL(s) {
				t.Errorf("URL(%q) is false", s)
			}
		}
	}
	for _, s := range []string{"", "gone.example", "http://gone.example.org/", "http://notgone.example/", "http://kept.example/", "http://kept.example/~a/gone", "http://kept.example:8081/p", "http://192.0.2.8/"} {
		if g.URL(s) {
			t.Errorf("URL(%q) is true", s)
		}
	}
	for s, want := range map[string]bool{"gone.example": true, "www.gone.example:80": true, "kept.example": false, "": false, "[2001:db8::7]:80": true} {
		if g.Host(s) != want {
			t.Errorf("Host(%q) is %t", s, !want)
		}
	}
	for s, want := range map[string]bool{
		"ftp://gone.example/x": true, `{"url": "http://kept.example/~a/gone?x=1"`: true, "mailto:me@a.gone.example": true, "http://BÜCHER.example:99999/": true, "gone": false, "http://kept.example/": false, "x\x00\xff": false,
	} {
		if g.Mentions(s) != want {
			t.Errorf("Mentions(%q) is %t", s, !want)
		}
	}
	body, _, err := b.Get(t.Context(), layout.Takedowns(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"example", "gone", "192.0.2.7", "2001", secret[:8]} {
		if strings.Contains(string(body), name) {
			t.Errorf("the list has %q:\n%s", name, body)
		}
	}
}

func TestAListWithoutAnEntryGuardsNothing(t *testing.T) {
	g, err := takedown.Open(t.Context(), bucket(t), "")
	if err != nil || g != nil {
		t.Fatalf("got %v, %v", g, err)
	}
	if g.URL("http://a.example/") || g.Host("a.example") || g.Mentions("a.example") {
		t.Error("a nil Guard recognizes something")
	}
}

func TestAListNeedsItsKey(t *testing.T) {
	b, _ := begun(t, nil, []string{"gone.example"})
	for _, wrong := range []string{"", "short", secret[1:], strings.Repeat("x", 64)} {
		if g, err := takedown.Open(t.Context(), b, wrong); !errors.Is(err, takedown.ErrKey) || g != nil || wrong != "" && strings.Contains(err.Error(), wrong) {
			t.Errorf("with the key %q: %v", wrong, err)
		}
	}
	other, err := takedown.NewKey(strings.Repeat("x", 64))
	if err != nil {
		t.Fatal(err)
	}
	if err := takedown.Append(t.Context(), b, other, matcher(t, nil, []string{"a.example"}), manifest.Takedown{}); !errors.Is(err, takedown.ErrKey) {
		t.Errorf("an entry with another key: %v", err)
	}
}

func TestAListGrowsOnce(t *testing.T) {
	b, _ := begun(t, nil, []string{"gone.example"})
	add(t, b, nil, []string{"GONE.example."}, "asked")
	removed := manifest.Count{Name: "rows", N: 7}
	add(t, b, nil, []string{"gone.example"}, "asked", removed)
	add(t, b, nil, []string{"gone.example"}, "asked") // begins again, and finds nothing
	add(t, b, []string{"http://a.example/"}, nil, "asked again")
	list, err := takedown.List(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Entries) != 2 || len(list.Entries[0].Domains) != 1 || len(list.Entries[1].URLs) < 1 || len(list.Entries[1].Hosts) != 1 {
		t.Fatalf("the list is %+v", list.Entries)
	}
	if diff := cmp.Diff([]manifest.Count{removed}, list.Entries[0].Counts); diff != "" {
		t.Errorf("counts of the first entry (-want +got):\n%s", diff)
	}
}

func TestAReasonThatNamesATargetIsRefused(t *testing.T) {
	b := bucket(t)
	k, err := takedown.NewKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	err = takedown.Append(t.Context(), b, k, matcher(t, nil, []string{"gone.example"}), manifest.Takedown{Reason: "letter of www.gone.example"})
	if !errors.Is(err, takedown.ErrTarget) {
		t.Errorf("got %v", err)
	}
	if list, err := takedown.List(t.Context(), b); list != nil || err != nil {
		t.Errorf("the list is %v, %v", list, err)
	}
}
