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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/stages"
)

// ErrCluster means that the cluster refuses the work or cannot start it. The message says why and what to
// do. If waiting can help, the error also wraps stages.ErrInterrupted, so that Kubernetes restarts a driver
// that runs as a Job.
var ErrCluster = errors.New("the cluster cannot run this")

// refusal is a one-line error that wraps ErrCluster and its causes.
type refusal struct {
	text   string
	causes []error
}

func (r *refusal) Error() string   { return r.text }
func (r *refusal) Unwrap() []error { return append([]error{ErrCluster}, r.causes...) }

// The time for which a driver waits while the cluster refuses requests, does not answer them, or starts no pods. Nothing
// in an answer says whether it passes: an upgrade of the control plane answers with 401, 403 and 404 for a while, a
// webhook without a backend with 403 or 500, and a registry may fail for one node or for all.
const (
	patience        = 30 * time.Minute
	watchedPatience = 12 * time.Second // for a person whose first pods do not run, probably because of a mistake
)

// patience returns the time for which the driver waits.
func (e *Executor) patience() time.Duration {
	if e.Watched && !e.started.Load() {
		return watchedPatience
	}
	return patience
}

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
		fix = "raise the namespace's ResourceQuota, delete Jobs that have ended, or lower kubernetes.parallelism.max and kubernetes.resources"
	case terminating(err):
		fix = fmt.Sprintf("the namespace is being deleted: wait until `kubectl get namespace %s` does not find it, create it again (%s)", ns, applyManifests)
	case byWebhook(err):
		fix = "an admission webhook or policy of the cluster refuses the request or does not answer: ask who runs it; `kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations,validatingadmissionpolicies` lists them"
	case apierrors.IsForbidden(err):
		fix = "grant what k8s/manifests/rbac.yaml lists: " + applyManifests
	case apierrors.IsNotFound(err) && strings.Contains(err.Error(), "namespaces"):
		fix = fmt.Sprintf("name another with --namespace or kubernetes.namespace, or create this one with everything it needs: %s", applyManifests)
	case invalid(err), apierrors.IsBadRequest(err):
		fix = "mend the kubernetes section of the config; `crawlbatch k8s render` shows the Job"
	case untrusted(err):
		fix = "the kubeconfig trusts another cluster than the one that answers: check --kubeconfig and its certificate-authority"
	case unanswered(err):
		later = true
		fix = "no cluster answers: check --kubeconfig and `kubectl cluster-info`"
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

// byWebhook reports whether admission control beyond Kubernetes' own refused a request or failed.
func byWebhook(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && (strings.Contains(err.Error(), "webhook") || strings.Contains(err.Error(), "ValidatingAdmissionPolicy"))
}

// invalid reports whether the API server has read an object and found it wrong. No wait can mend the object.
func invalid(err error) bool { return apierrors.IsInvalid(err) && !byWebhook(err) }

// untrusted reports whether the server that answered is not the configured cluster.
func untrusted(err error) bool {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var certificate x509.CertificateInvalidError
	var verification *tls.CertificateVerificationError
	return errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &certificate) || errors.As(err, &verification)
}

// unanswered reports whether the API did not answer or is temporarily unable to answer.
func unanswered(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err)
}

// absent reports whether the API server says that an object does not exist. A 404 of a server that does not serve the
// kind of object yet, such as during an upgrade, is another answer.
func absent(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// ask repeats call until it succeeds, or fails with an error for which answer returns true, or with an invalid object.
// ask returns such errors unchanged; answer may be nil. It logs every other failure and waits, for at most the time of
// patience. It then returns the last error, reworded by explain.
func (r *run) ask(ctx context.Context, call func() error, answer func(error) bool) error {
	began, waited := r.Clock.Now(), false
	for {
		err := call()
		switch {
		case err == nil, answer != nil && answer(err):
			if waited {
				r.Log.Info("the cluster answers again", "after", r.Clock.Now().Sub(began).Round(time.Second))
			}
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case invalid(err):
			return explain(err, r.Config)
		}
		most := r.patience()
		if away := r.Clock.Now().Sub(began); away >= most {
			err = explain(fmt.Errorf("for %s: %w", away.Round(time.Second), err), r.Config)
			if most == patience {
				err = &refusal{err.Error(), []error{err, stages.ErrInterrupted}}
			}
			return err
		}
		waited = true
		r.trouble.say("cluster", string(apierrors.ReasonForError(err)), fmt.Sprintf("waiting for at most %s (Jobs in the cluster continue): %v", most, explain(err, r.Config)))
		if err := r.Clock.Sleep(ctx, pollEvery); err != nil {
			return err
		}
	}
}
