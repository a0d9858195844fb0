package k8s

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// TestTheClientSpeaksTheAPI compares each request of the client with the Kubernetes API
// reference.
func TestTheClientSpeaksTheAPI(t *testing.T) {
	var sent []string
	reply, code := "", 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if a := r.Header.Get("Accept"); a != "application/vnd.kubernetes.protobuf,application/json" {
			t.Errorf("%s accepts %q", r.Method, a)
		}
		sent = append(sent, r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("Content-Type")+" "+string(body))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, reply)
	}))
	defer server.Close()
	c, err := newClient(&rest.Config{Host: server.URL, QPS: apiRate, Burst: apiBurst})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()

	reply, code = `{"kind":"JobList","apiVersion":"batch/v1","items":[{"metadata":{"name":"a"},"spec":{"completions":7}}]}`, 200
	jobs, err := c.Jobs("crawl").List(ctx, metav1.ListOptions{LabelSelector: "x=y", Limit: 3})
	if err != nil || len(jobs.Items) != 1 || jobs.Items[0].Name != "a" || *jobs.Items[0].Spec.Completions != 7 {
		t.Errorf("list: %v, %v", jobs, err)
	}
	reply, code = `{"kind":"Job","apiVersion":"batch/v1","metadata":{"name":"a","uid":"u1"}}`, 201
	job, err := c.Jobs("crawl").Create(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{FieldManager: "crawlbatch"})
	if err != nil || job.UID != "u1" {
		t.Errorf("create: %v, %v", job, err)
	}
	reply, code = `{"kind":"Status","apiVersion":"v1","status":"Success"}`, 200
	if err := c.Jobs("crawl").Delete(ctx, "a", metav1.DeleteOptions{PropagationPolicy: ptr(metav1.DeletePropagationForeground)}); err != nil {
		t.Error(err)
	}
	reply = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"}}`
	if p, err := c.Pods("crawl").Patch(ctx, "p", types.MergePatchType, []byte(`{"a":1}`), metav1.PatchOptions{}); err != nil || p.Name != "p" {
		t.Errorf("patch: %v, %v", p, err)
	}
	reply, code = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"pods \"q\" not found"}`, 404
	if _, err := c.Pods("crawl").Get(ctx, "q", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get of nothing: %v", err)
	}
	reply, code = `{"kind":"EventList","apiVersion":"v1","items":[]}`, 200
	if _, err := c.Events("crawl").List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.uid=u1"}); err != nil {
		t.Error(err)
	}

	want := []string{
		"GET /apis/batch/v1/namespaces/crawl/jobs?labelSelector=x%3Dy&limit=3  ",
		`POST /apis/batch/v1/namespaces/crawl/jobs?fieldManager=crawlbatch application/json {"kind":"Job","apiVersion":"batch/v1","metadata":{"name":"a"},"spec":{"template":{"metadata":{},"spec":{"containers":null}}},"status":{}}` + "\n",
		`DELETE /apis/batch/v1/namespaces/crawl/jobs/a application/json {"kind":"DeleteOptions","apiVersion":"batch/v1","propagationPolicy":"Foreground"}` + "\n",
		`PATCH /api/v1/namespaces/crawl/pods/p application/merge-patch+json {"a":1}`,
		"GET /api/v1/namespaces/crawl/pods/q  ",
		"GET /api/v1/namespaces/crawl/events?fieldSelector=involvedObject.uid%3Du1  ",
	}
	if !slices.Equal(sent, want) {
		t.Errorf("it sent\n%q, want\n%q", sent, want)
	}
}
