package k8s

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/stages"
)

// ErrCluster means that the cluster refuses the work or cannot start it. The message says why and what to
// do. If waiting can help, because no answer came or a quota is used up, the error also wraps
// stages.ErrInterrupted, so that Kubernetes restarts a driver that runs as a Job.
var ErrCluster = errors.New("the cluster cannot run this")

// refusal is a one-line error that wraps ErrCluster and its causes.
type refusal struct {
	text   string
	causes []error
}

func (r *refusal) Error() string   { return r.text }
func (r *refusal) Unwrap() []error { return append([]error{ErrCluster}, r.causes...) }

// The time limits for a cluster that does not answer the driver.
const (
	startPatience = 12 * time.Second // limit for a cluster that has never answered this process, because its address may be wrong
	patience      = 30 * time.Minute // limit for a cluster that has answered this process before; the Jobs continue during an outage
)

// applyManifests is the command that installs the objects that the driver needs in the cluster.
const applyManifests = "`kubectl apply -k` on k8s/manifests, or on your overlay of them"

// explain turns an API error into a sentence that names the problem and its remedy.
func explain(err error, cfg *config.Config) error {
	ns := cfg.Kubernetes.Namespace
	later, fix := false, ""
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, ErrCluster):
		return err
	case apierrors.IsUnauthorized(err):
		fix = "log in to the cluster again, or give other credentials with --kubeconfig"
	case overQuota(err):
		later = true
		fix = "raise the namespace's ResourceQuota, delete Jobs that have ended, or lower kubernetes.parallelism and kubernetes.resources"
	case terminating(err):
		fix = fmt.Sprintf("the namespace is being deleted: wait until `kubectl get namespace %s` does not find it, create it again (%s), and run this again", ns, applyManifests)
	case apierrors.IsForbidden(err):
		fix = "grant what k8s/manifests/rbac.yaml lists: " + applyManifests
	case apierrors.IsNotFound(err) && strings.Contains(err.Error(), "namespaces"):
		fix = fmt.Sprintf("name another with --namespace or kubernetes.namespace, or create this one with everything it needs: %s", applyManifests)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		fix = "mend the kubernetes section of the config; `crawlbatch k8s render` shows the Job"
	case untrusted(err):
		fix = "the kubeconfig trusts another cluster than the one that answers: check --kubeconfig and its certificate-authority"
	case transient(err):
		later = true
		fix = "no cluster answers: check --kubeconfig and `kubectl cluster-info`, and run this again when it does"
	default:
		return &refusal{fmt.Sprintf("cluster, namespace %s: %v", ns, err), []error{err}}
	}
	causes := []error{err}
	if later {
		causes = append(causes, stages.ErrInterrupted)
	}
	return &refusal{fmt.Sprintf("cluster, namespace %s: %v: %s", ns, err, fix), causes}
}

func overQuota(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}

func terminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// untrusted reports whether the server that answered is not the configured cluster.
func untrusted(err error) bool {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var certificate x509.CertificateInvalidError
	var verification *tls.CertificateVerificationError
	return errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &certificate) || errors.As(err, &verification)
}

// lasting reports whether the request would fail again in the same way.
func lasting(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || untrusted(err)
}

// transient reports whether the API did not answer or is temporarily unable to answer.
func transient(err error) bool {
	if err == nil || lasting(err) {
		return false
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err)
}

// answers reports whether err is an answer of the API itself.
func answers(err error) bool {
	var status apierrors.APIStatus
	return err == nil || errors.As(err, &status)
}

// ask repeats call until call succeeds or fails with a lasting error, which ask returns unchanged. While the
// cluster does not answer, ask waits for at most patience, or for at most startPatience if the cluster has
// never answered this process. It then returns the last error, reworded by explain.
func (r *run) ask(ctx context.Context, call func() error) error {
	began := r.Clock.Now()
	for {
		err := call()
		if answers(err) && !transient(err) {
			r.answered.Store(true)
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !transient(err):
			return err
		}
		wait, text := startPatience, "no cluster has answered so far: "
		if r.answered.Load() {
			wait, text = patience, "the cluster does not answer; its Jobs continue: "
		}
		if away := r.Clock.Now().Sub(began); away >= wait {
			return explain(fmt.Errorf("for %s: %w", away.Round(time.Second), err), r.Config)
		}
		r.trouble.say("cluster", "", text+firstLine(err.Error()))
		if err := r.Clock.Sleep(ctx, pollEvery); err != nil {
			return err
		}
	}
}
