//go:build lab

package lab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"crawlbatch.io/crawlbatch/cmd/crawltest"
	"crawlbatch.io/crawlbatch/k8s"
)

// Faults of a cluster that pass by themselves, or that Kubernetes does not report as failures. No crawl may end because of
// them, and the driver must say within seconds what it waits for.

// mutation changes a pod that is about to be created. It returns operations of JSON Patch (RFC 6902).
type mutation func(pod *corev1.Pod) []map[string]any

// admission is an admission webhook of the crawl's namespace.
type admission struct {
	change atomic.Pointer[mutation]
	name   string
}

// admit installs a webhook for pods. Until the test sets change, the webhook changes nothing.
func (c *clusterCrawl) admit(r *clusterRun) *admission {
	t := c.t
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "webhook"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.ParseIP(r.listen)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", net.JoinHostPort(r.listen, "0"), &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	if err != nil {
		t.Fatal(err)
	}
	a := &admission{name: c.namespace + ".crawlbatch.example"}
	server := &http.Server{Handler: http.HandlerFunc(a.answer), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	bundle := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	c.webhook(a.name, "MutatingWebhookConfiguration", "https://"+listener.Addr().String(), bundle, "pods")
	return a
}

// webhook installs a webhook for the creation of a kind of object in the crawl's namespace.
func (c *clusterCrawl) webhook(name, kind, url, bundle, resource string) {
	c.t.Helper()
	group := ""
	if resource == "jobs" {
		group = "batch"
	}
	manifest := fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1, kind: %s, metadata: {name: "%s"}, webhooks: [{
name: "%[2]s", admissionReviewVersions: [v1], sideEffects: None, failurePolicy: Fail, timeoutSeconds: 2, clientConfig: {url: "%[3]s", caBundle: "%s"},
namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "%s"}}, rules: [{apiGroups: ["%s"], apiVersions: [v1], operations: [CREATE], resources: [%s]}]}]}`,
		kind, name, url, bundle, c.namespace, group, resource)
	if out, err := tryKubectl(manifest, "apply", "-f", "-"); err != nil {
		c.t.Fatalf("the webhook: %v\n%s", err, out)
	}
	c.t.Cleanup(func() { _, _ = tryKubectl("", "delete", kind, name, "--ignore-not-found") })
}

func (a *admission) answer(w http.ResponseWriter, q *http.Request) {
	var review struct {
		Request struct {
			UID    string          `json:"uid"`
			Object json.RawMessage `json:"object"`
		} `json:"request"`
	}
	var pod corev1.Pod
	if err := json.NewDecoder(q.Body).Decode(&review); err != nil || json.Unmarshal(review.Request.Object, &pod) != nil {
		http.Error(w, "not a review of a pod", http.StatusBadRequest)
		return
	}
	response := map[string]any{"uid": review.Request.UID, "allowed": true}
	if change := a.change.Load(); change != nil {
		if operations := (*change)(&pod); len(operations) > 0 {
			patch, _ := json.Marshal(operations) // strings, numbers and objects of the API always marshal
			response["patchType"], response["patch"] = "JSONPatch", patch
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

// webhookAway lets a webhook without a server decide about the creation of Jobs, and later of pods.
func webhookAway(t *testing.T, r *clusterRun, salt uint64) {
	c := r.crawl(t, clusterPlan{salt: salt, delay: clusterDelay})
	nobody := "https://" + net.JoinHostPort(r.listen, "1") + "/"
	name := c.namespace + ".away.example"
	c.webhook(name, "ValidatingWebhookConfiguration", nobody, "", "jobs")
	p := c.run()
	p.waitForText(t, "failed calling webhook", sayWithin)
	if !p.outlives(30 * time.Second) {
		t.Fatal("the run ended while a webhook was away")
	}
	if n := len(listObjects[batchv1.Job](t, c.namespace, "jobs")); n != 0 {
		t.Fatalf("%d Jobs were created", n)
	}
	kubectl(t, "delete", "validatingwebhookconfiguration", name)
	p.waitForText(t, "the cluster answers again", sayWithin)
	waitUntil(t, "a task", 2*time.Minute, func() bool { return len(c.processes("task")) > 0 })
	c.webhook(name, "ValidatingWebhookConfiguration", nobody, "", "pods") // later pods, and those of the next stages, cannot be created
	p.waitForText(t, "pods cannot be created at present", 3*time.Minute)
	if !p.outlives(30 * time.Second) {
		t.Fatal("the run ended while a webhook was away")
	}
	kubectl(t, "delete", "validatingwebhookconfiguration", name)
	if code, out := p.wait(); code != 0 {
		t.Errorf("run: exit %d\n%s", code, out)
	}
	c.check(r.chaosRun, c.bucket(), nil)
}

// registryFailsForOnePod gives one pod an image whose registry does not answer, as on a node without a way to it.
func registryFailsForOnePod(t *testing.T, r *clusterRun, salt uint64) {
	c := r.crawl(t, clusterPlan{salt: salt, delay: clusterDelay})
	broken := net.JoinHostPort(r.listen, "1") + "/crawlbatch:none"
	change := mutation(func(pod *corev1.Pod) []map[string]any {
		if pod.Labels[k8s.LabelStage] != "fetch" || pod.Annotations[batchv1.JobCompletionIndexAnnotation] != "0" {
			return nil
		}
		return []map[string]any{
			{"op": "replace", "path": "/spec/containers/0/image", "value": broken},
			{"op": "replace", "path": "/spec/containers/0/imagePullPolicy", "value": "IfNotPresent"},
		}
	})
	a := c.admit(r)
	a.change.Store(&change)
	p := c.run()
	p.waitForText(t, "cannot be pulled", sayWithin)
	if !p.outlives(30 * time.Second) {
		t.Fatal("the run ended because of one pod's image")
	}
	a.change.Store(nil)
	stuck := listObjects[corev1.Pod](t, c.namespace, "pods", "-l", "crawlbatch.io/stage=fetch,batch.kubernetes.io/job-completion-index=0")
	if len(stuck) != 1 || stuck[0].Status.Phase != corev1.PodPending {
		t.Fatalf("%d pods of index 0: %+v", len(stuck), stuck)
	}
	kubectl(t, "-n", c.namespace, "set", "image", "pod/"+stuck[0].Name, "task="+r.image)
	if code, out := p.wait(); code != 0 {
		t.Errorf("run: exit %d\n%s", code, out)
	}
	c.check(r.chaosRun, c.bucket(), nil)
}

// rightsAway takes the rights of a driver in the cluster away for a minute, at its start.
func rightsAway(t *testing.T, r *clusterRun, salt uint64) {
	c := r.crawl(t, clusterPlan{salt: salt, delay: clusterDelay})
	kubectl(t, "-n", c.namespace, "delete", "rolebinding", "crawlbatch-driver")
	if code, out := c.start("run", append([]string{"--rounds", "2", "--detach"}, c.flags...)...).wait(); code != 0 {
		t.Fatalf("run --detach: exit %d\n%s", code, out)
	}
	logs := func() string {
		out, _ := tryKubectl("", "-n", c.namespace, "logs", "-l", "app.kubernetes.io/component=driver", "--tail=-1")
		return out
	}
	waitUntil(t, "a word about the missing rights", 2*time.Minute, func() bool { return strings.Contains(logs(), "rbac.yaml") })
	time.Sleep(time.Minute) // the fault lasts; nothing waits for this sleep
	kubectl(t, "-n", c.namespace, "create", "rolebinding", "crawlbatch-driver", "--role=crawlbatch-driver", "--serviceaccount="+c.namespace+":crawlbatch-driver")
	kubectl(t, "-n", c.namespace, "wait", "job", "-l", "app.kubernetes.io/component=driver", "--for=condition=Complete", "--timeout=6m")
	if !strings.Contains(logs(), "the cluster answers again") {
		t.Errorf("the driver does not say that it goes on:\n%s", logs())
	}
	if pods := listObjects[corev1.Pod](t, c.namespace, "pods", "-l", "app.kubernetes.io/component=driver"); len(pods) != 1 {
		t.Errorf("%d pods of the driver: it did not wait inside its process", len(pods))
	}
	c.check(r.chaosRun, c.bucket(), nil)
}

// evictedForScratch fills the scratch volume of a task until the kubelet evicts its pod.
func evictedForScratch(t *testing.T, r *clusterRun, salt uint64) {
	c := r.crawl(t, clusterPlan{salt: salt, delay: 2 * clusterDelay, replace: []string{"resources: {", "resources: {fetch: {scratch: 256MiB}, "}})
	p := c.run()
	waitUntil(t, "a task", 2*time.Minute, func() bool { return len(c.processes("task")) > 0 })
	victim := c.processes("task")[0]
	if err := os.WriteFile(filepath.Join("/proc", strconv.Itoa(victim.pid), "root", "scratch", "large"), make([]byte, 320<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	from := time.Now()
	c.waitForBlow(from, victim)
	p.waitForText(t, "raise kubernetes.resources.fetch.scratch to ", time.Minute)
	counted := func() (n int) {
		for _, j := range listObjects[batchv1.Job](t, c.namespace, "jobs", "-l", "crawlbatch.io/stage=fetch,crawlbatch.io/round=0") {
			n += int(j.Status.Failed)
		}
		return n
	}
	waitUntil(t, "the count of the failure", time.Minute, func() bool { return counted() == 1 })
	p.interrupt(t)
	c.interrupted = true // because the driver interrupts pods when it replaces their Job
	crawltest.Write(t, c.config, strings.ReplaceAll(c.text, "fetch: {scratch: 256MiB}, ", ""))
	c.finish()
	c.check(r.chaosRun, c.bucket(), nil)
	if events := kubectl(t, "-n", c.namespace, "get", "events", "--field-selector=reason=ResourcesTooSmall"); !strings.Contains(events, "scratch") {
		t.Errorf("no Event tells of the scratch volume:\n%s", events)
	}
}

// sidecarStays adds a container that never ends to the first pods of the fetch stage, as a service mesh does.
func sidecarStays(t *testing.T, r *clusterRun, salt uint64) {
	c := r.crawl(t, clusterPlan{salt: salt, delay: clusterDelay})
	var added atomic.Int32
	change := mutation(func(pod *corev1.Pod) []map[string]any {
		if pod.Labels[k8s.LabelStage] != "fetch" || pod.Labels[k8s.LabelRound] != "0" || added.Add(1) > 2 {
			return nil
		}
		sidecar := pod.Spec.Containers[0].DeepCopy()
		sidecar.Name, sidecar.Args = "proxy", []string{"simweb", "--listen=:8099", "--hosts=1", "--pages=1"}
		sidecar.Ports = nil
		return []map[string]any{{"op": "add", "path": "/spec/containers/-", "value": sidecar}}
	})
	c.admit(r).change.Store(&change)
	p := c.run()
	p.waitForText(t, "container proxy runs on", 4*time.Minute)
	if code, out := p.wait(); code != 0 {
		t.Errorf("run: exit %d\n%s", code, out)
	}
	c.check(r.chaosRun, c.bucket(), nil)
}
