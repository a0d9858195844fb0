package k8s

import (
	"cmp"
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/flowcontrol"
)

// Client is the part of a cluster's API that package k8s uses. Package k8s does not use the
// Clientset of client-go, which supports every kind of every API group and would add 12 MB to the
// binary.
type Client interface {
	Jobs(namespace string) Resource[batchv1.Job, batchv1.JobList]
	Pods(namespace string) Resource[corev1.Pod, corev1.PodList]
	Events(namespace string) Resource[corev1.Event, corev1.EventList]
}

// Resource is one kind of object in a namespace, with client-go's methods and errors.
type Resource[T, L any] interface {
	Create(ctx context.Context, object *T, options metav1.CreateOptions) (*T, error)
	Get(ctx context.Context, name string, options metav1.GetOptions) (*T, error)
	List(ctx context.Context, options metav1.ListOptions) (*L, error)
	Patch(ctx context.Context, name string, format types.PatchType, patch []byte, options metav1.PatchOptions, subresources ...string) (*T, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// client is a Client that talks to an API server.
type client struct {
	batch, core rest.Interface
	parameters  runtime.ParameterCodec
}

// newClient returns a client for the API server that cfg names, without sending a request.
func newClient(cfg *rest.Config) (*client, error) {
	known := runtime.NewScheme()
	metav1.AddToGroupVersion(known, schema.GroupVersion{Version: "v1"})
	for _, add := range []func(*runtime.Scheme) error{batchv1.AddToScheme, corev1.AddToScheme} {
		if err := add(known); err != nil {
			return nil, err
		}
	}
	transport, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	limited := rest.CopyConfig(cfg)
	limited.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(cfg.QPS, cfg.Burst) // the clients of both API groups share the limiter
	group := func(path string, version schema.GroupVersion) (rest.Interface, error) {
		c := rest.CopyConfig(limited)
		c.APIPath, c.GroupVersion = path, &version
		c.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON // protobuf first, because a list of pods is several times longer in JSON
		c.NegotiatedSerializer = serializer.NewCodecFactory(known).WithoutConversion()
		return rest.RESTClientForConfigAndClient(c, transport)
	}
	c := &client{parameters: runtime.NewParameterCodec(known)}
	if c.batch, err = group("/apis", batchv1.SchemeGroupVersion); err != nil {
		return nil, err
	}
	c.core, err = group("/api", corev1.SchemeGroupVersion)
	return c, err
}

func (c *client) Jobs(namespace string) Resource[batchv1.Job, batchv1.JobList] {
	return kind[batchv1.Job, batchv1.JobList, *batchv1.Job, *batchv1.JobList]{c.batch, c.parameters, namespace, "jobs"}
}

func (c *client) Pods(namespace string) Resource[corev1.Pod, corev1.PodList] {
	return kind[corev1.Pod, corev1.PodList, *corev1.Pod, *corev1.PodList]{c.core, c.parameters, namespace, "pods"}
}

func (c *client) Events(namespace string) Resource[corev1.Event, corev1.EventList] {
	return kind[corev1.Event, corev1.EventList, *corev1.Event, *corev1.EventList]{c.core, c.parameters, namespace, "events"}
}

// pointer constrains a type parameter to a pointer to T that can decode the API server's answers.
type pointer[T any] interface {
	*T
	runtime.Object
}

type kind[T, L any, PT pointer[T], PL pointer[L]] struct {
	api        rest.Interface
	parameters runtime.ParameterCodec
	namespace  string
	name       string // name in API paths, such as pods
}

func (k kind[T, L, PT, PL]) Create(ctx context.Context, object *T, options metav1.CreateOptions) (*T, error) {
	return k.requestOne(ctx, k.request("POST", &options).Body(PT(object)))
}

func (k kind[T, L, PT, PL]) Get(ctx context.Context, name string, options metav1.GetOptions) (*T, error) {
	return k.requestOne(ctx, k.request("GET", &options).Name(name))
}

func (k kind[T, L, PT, PL]) List(ctx context.Context, options metav1.ListOptions) (*L, error) {
	list := new(L)
	return list, k.request("GET", &options).Do(ctx).Into(PL(list))
}

func (k kind[T, L, PT, PL]) Patch(ctx context.Context, name string, format types.PatchType, patch []byte, options metav1.PatchOptions, subresources ...string) (*T, error) {
	return k.requestOne(ctx, k.inNamespace(k.api.Patch(format)).VersionedParams(&options, k.parameters).Name(name).SubResource(subresources...).Body(patch))
}

func (k kind[T, L, PT, PL]) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	return k.inNamespace(k.api.Delete()).Name(name).Body(&options).Do(ctx).Error()
}

// request returns a request for objects of the kind in the namespace.
func (k kind[T, L, PT, PL]) request(verb string, options runtime.Object) *rest.Request {
	return k.inNamespace(k.api.Verb(verb)).VersionedParams(options, k.parameters)
}

func (k kind[T, L, PT, PL]) inNamespace(request *rest.Request) *rest.Request {
	return request.Namespace(k.namespace).Resource(k.name)
}

// requestOne sends a request whose answer is a single object.
func (k kind[T, L, PT, PL]) requestOne(ctx context.Context, request *rest.Request) (*T, error) {
	object := new(T)
	return object, request.Do(ctx).Into(PT(object))
}

// The limits of requests to the cluster.
const (
	apiTimeout = 15 * time.Second // time limit of one call
	apiRate    = 20               // largest rate of calls, per second
	apiBurst   = 100
)

// Connect returns a client for the cluster in a kubeconfig file: the given file, the file in
// KUBECONFIG or ~/.kube/config. If there is no such file, Connect uses the cluster in which this
// process runs. Connect sends no request. The error of Connect wraps ErrCluster.
func Connect(kubeconfig, context string) (Client, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
	if err != nil {
		return nil, &refusal{fmt.Sprintf("no cluster is configured: %v: give --kubeconfig FILE or set KUBECONFIG, and check --kube-context", err), []error{err}}
	}
	cfg.Timeout, cfg.QPS, cfg.Burst = apiTimeout, apiRate, apiBurst
	cfg.UserAgent = "crawlbatch " + rest.DefaultKubernetesUserAgent()
	client, err := newClient(cfg)
	if err != nil {
		return nil, &refusal{fmt.Sprintf("the kubeconfig cannot be used: %v", err), []error{err}}
	}
	return client, nil
}

// AdoptImage sets the image in a config without an image. It takes the image of the named pod, so
// that a driver in the cluster starts tasks with its own image: that of the container run, else task, else the
// first, because the cluster may have added containers. The error of AdoptImage wraps ErrCluster.
func (e *Executor) AdoptImage(ctx context.Context, pod string) error {
	if e.Config.Kubernetes.Image != "" || pod == "" {
		return nil
	}
	var p *corev1.Pod
	err := e.newRun().ask(ctx, func() (err error) {
		p, err = e.Client.Pods(e.Config.Kubernetes.Namespace).Get(ctx, pod, metav1.GetOptions{})
		return err
	}, nil)
	if err != nil {
		return err
	}
	images, first := map[string]string{}, ""
	for _, c := range p.Spec.Containers {
		images[c.Name], first = c.Image, cmp.Or(first, c.Image)
	}
	e.Config.Kubernetes.Image = cmp.Or(images[driverContainer], images[containerName], first)
	return nil
}
