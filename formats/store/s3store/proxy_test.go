package s3store

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/store"
)

// changedTags is a proxy before a fake that changes the ETags of answers.
type changedTags struct {
	next   http.Handler
	change func(method, tag string) string
}

func (c changedTags) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Query().Get("list-type") == "2":
		w.Header().Set("Content-Type", "application/xml")
		_, _ = w.Write([]byte("<ListBucketResult></ListBucketResult>"))
		return
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
		return
	}
	answer := httptest.NewRecorder()
	c.next.ServeHTTP(answer, r)
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	if tag := answer.Header().Get("ETag"); tag != "" {
		w.Header().Set("ETag", c.change(r.Method, tag))
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// A proxy that changes ETags must be named at once: no swap could succeed.
func TestAProxyThatChangesETagsIsToldAtOnce(t *testing.T) {
	onlyGET := func(change func(string) string) func(string, string) string {
		return func(method, tag string) string {
			if method != http.MethodGet {
				return tag
			}
			return change(tag)
		}
	}
	weak := func(_, tag string) string { return "W/" + tag }
	for name, c := range map[string]struct {
		change func(method, tag string) string
		says   string
	}{
		"weak":               {weak, "weak ETags"},
		"weak, lower case":   {func(_, tag string) string { return "w/" + tag }, "weak ETags"},
		"weak only for GETs": {onlyGET(func(tag string) string { return "W/" + tag }), "weak ETags"},
		"suffix of Apache":   {onlyGET(func(tag string) string { return strings.TrimSuffix(tag, `"`) + `-gzip"` }), "a proxy that compresses responses"},
	} {
		s := connect(t, serve(t, changedTags{&fake{objects: map[string]string{}}, c.change}), "bucket")
		began := time.Now()
		_, err := store.Probe(t.Context(), s)
		if !errors.Is(err, store.ErrUnsupported) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "not answer") {
			t.Errorf("%s: Probe: %v", name, err)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("%s: Probe took %v", name, took)
		}
	}
	backend := &fake{objects: map[string]string{objectPath: "body"}}
	s := connect(t, serve(t, changedTags{backend, weak}), "bucket")
	_, _, err := s.Get(t.Context(), "k", 100)
	if !errors.Is(err, store.ErrUnsupported) {
		t.Errorf("Get: %v", err)
	}
	if _, err := s.Open(t.Context(), "k"); !errors.Is(err, store.ErrUnsupported) {
		t.Errorf("Open: %v", err)
	}
}

// TestTheEncodingIsNotSigned sends requests through a proxy that rewrites Accept-Encoding, as Cloudflare and
// Google Cloud Storage do. The signature must not cover the field, but the field must be sent.
func TestTheEncodingIsNotSigned(t *testing.T) {
	backend := &fake{objects: map[string]string{}}
	seen := map[string]bool{}
	s := connect(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, signed, ok := strings.Cut(r.Header.Get("Authorization"), "SignedHeaders=")
		signed, _, _ = strings.Cut(signed, ",")
		switch {
		case !ok || !strings.Contains(signed, "host"):
			t.Errorf("%s: no signature in %q", r.Method, r.Header.Get("Authorization"))
		case strings.Contains(signed, "accept-encoding"):
			t.Errorf("%s: signed %s", r.Method, signed)
		}
		if got := r.Header.Get("Accept-Encoding"); got != "identity" {
			t.Errorf("%s: Accept-Encoding %q", r.Method, got)
		}
		seen[r.Method] = true
		if r.Method == http.MethodPut && len(seen) == 1 {
			seen["again"] = true
			refuse(w, 503, "SlowDown") // a request that is sent again is signed again
			return
		}
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		backend.ServeHTTP(w, r)
	})), "bucket")
	if _, err := store.CreateBytes(t.Context(), s, "k", []byte("mine")); err != nil {
		t.Fatal(err)
	}
	if body, _, err := s.Get(t.Context(), "k", 100); err != nil || string(body) != "mine" {
		t.Errorf("%q, %v", body, err)
	}
	obj, err := s.Open(t.Context(), "k")
	if err != nil || obj.Size() != 4 {
		t.Errorf("Open: %v", err)
	}
	if err := s.Delete(t.Context(), "k"); err != nil {
		t.Error(err)
	}
	if len(seen) != 5 { // PUT, the retry, GET, HEAD, DELETE
		t.Errorf("requests %v", seen)
	}
}
