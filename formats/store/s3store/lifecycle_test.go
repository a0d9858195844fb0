package s3store

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// lifecycleServer answers the two requests for a lifecycle configuration as S3 does, because the S3
// server of the other tests does not know them.
type lifecycleServer struct {
	mu     sync.Mutex
	stored string // configuration; "" if there is none
}

func (l *lifecycleServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !r.URL.Query().Has("lifecycle") || r.URL.Path != "/bucket" {
		http.Error(w, "unexpected request", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/xml")
	switch {
	case r.Method == http.MethodPut:
		body, _ := io.ReadAll(r.Body)
		l.stored = string(body)
	case l.stored == "":
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `<Error><Code>NoSuchLifecycleConfiguration</Code><Message>none</Message></Error>`)
	default:
		w.Header().Set("x-amz-transition-default-minimum-object-size", "varies_by_storage_class")
		_, _ = io.WriteString(w, l.stored)
	}
}

func openAt(t *testing.T, h http.Handler) *Store {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	t.Setenv("AWS_ENDPOINT_URL_S3", server.URL)
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	t.Setenv("AWS_REGION", "us-east-1")
	s, err := Open(t.Context(), "s3://bucket/crawls", Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestALifecycleRuleIsAddedToThoseOfTheBucket(t *testing.T) {
	l := &lifecycleServer{}
	s := openAt(t, l)
	for days := range int32(2) { // the second call replaces the rule of the first
		if kept, err := s.SetLifecycle(t.Context(), s.Cold("warc/", 90+days, "GLACIER_IR")); kept != 0 || err != nil {
			t.Fatalf("%d rules kept, %v", kept, err)
		}
	}
	for _, want := range []string{"<ID>crawlbatch cold crawls/warc/</ID>", "<Prefix>crawls/warc/</Prefix>", "<Days>91</Days>", "<StorageClass>GLACIER_IR</StorageClass>", "<Status>Enabled</Status>"} {
		if strings.Count(l.stored, want) != 1 {
			t.Errorf("%s is not in %s", want, l.stored)
		}
	}
	const foreign = `<Rule><ID>logs</ID><Filter><And><Prefix>logs/</Prefix><Tag><Key>k</Key><Value>v</Value></Tag></And></Filter><Status>Disabled</Status>` +
		`<Expiration><Days>7</Days></Expiration><NoncurrentVersionExpiration><NoncurrentDays>3</NoncurrentDays></NoncurrentVersionExpiration></Rule>`
	l.stored = `<LifecycleConfiguration>` + foreign + l.stored[strings.Index(l.stored, "<Rule>"):]
	if kept, err := s.SetLifecycle(t.Context(), s.Cold("warc/", 30, "STANDARD_IA")); kept != 1 || err != nil {
		t.Fatalf("%d rules kept, %v", kept, err)
	}
	for _, want := range []string{"<ID>logs</ID>", "<Prefix>logs/</Prefix>", "<Key>k</Key>", "<Status>Disabled</Status>", "<NoncurrentDays>3</NoncurrentDays>", "<Days>7</Days>", "<Days>30</Days>"} {
		if strings.Count(l.stored, want) != 1 {
			t.Errorf("%s is not in %s", want, l.stored)
		}
	}
	if strings.Contains(l.stored, "GLACIER_IR") {
		t.Errorf("the old rule is left: %s", l.stored)
	}
}

func TestALifecycleConfigurationPrintsAsTheCommandLineOfAWSReadsIt(t *testing.T) {
	body, err := json.Marshal(openAt(t, &lifecycleServer{}).Cold("warc/", 90, "GLACIER_IR"))
	want := `{"Rules":[{"ID":"crawlbatch cold crawls/warc/","Status":"Enabled","Filter":{"Prefix":"crawls/warc/"},"Transitions":[{"Days":90,"StorageClass":"GLACIER_IR"}]}]}`
	if err != nil || string(body) != want {
		t.Errorf("%s, %v", body, err)
	}
}

func TestARefusedLifecycleConfigurationChangesNothing(t *testing.T) {
	s := openAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			t.Error("a configuration that could not be read was replaced")
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `<Error><Code>AccessDenied</Code><Message>no</Message></Error>`)
	}))
	if _, err := s.SetLifecycle(t.Context(), s.Cold("warc/", 90, "GLACIER_IR")); err == nil || !strings.Contains(err.Error(), "lifecycle") {
		t.Errorf("error %v", err)
	}
}
