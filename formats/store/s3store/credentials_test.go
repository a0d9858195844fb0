package s3store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"crawlbatch.io/crawlbatch/formats/store"
)

// TestAnOutageOfTheSourceOfCredentialsPasses opens a store while the service that gives out its credentials
// fails. A pod repeats a command after an outage, but not after a wrong configuration.
func TestAnOutageOfTheSourceOfCredentialsPasses(t *testing.T) {
	const sts, container, metadata = "AWS_ENDPOINT_URL_STS", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_EC2_METADATA_SERVICE_ENDPOINT"
	for _, c := range []struct {
		name   string
		source string
		status int // 0: nobody listens
		code   string
		want   error
		says   string
	}{
		{"STS, nobody listens", sts, 0, "", store.ErrUnavailable, "connection refused"},
		{"STS, out of order", sts, 503, "ServiceUnavailable", store.ErrUnavailable, "ServiceUnavailable, status 503"},
		{"STS, behind a broken gateway", sts, 502, "", store.ErrUnavailable, "status 502"},
		{"STS, throttled", sts, 400, "Throttling", store.ErrUnavailable, "Throttling"},
		{"STS, the issuer is away", sts, 400, "IDPCommunicationError", store.ErrUnavailable, "IDPCommunicationError"},
		{"STS, denied", sts, 403, "AccessDenied", store.ErrDenied, "AccessDenied, status 403"},
		{"STS, expired", sts, 400, "ExpiredTokenException", store.ErrDenied, "ExpiredToken"},
		{"STS, no token", sts, -1, "", store.ErrDenied, "AWS_WEB_IDENTITY_TOKEN_FILE"},
		{"container, unknown", container, 404, "", store.ErrDenied, "AWS_CONTAINER_CREDENTIALS_"},
		{"machine, no role", metadata, 404, "", store.ErrDenied, "no AWS credentials found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE", container} {
				t.Setenv(name, "")
			}
			t.Setenv("AWS_CONFIG_FILE", "/dev/null")
			t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
			t.Setenv("AWS_REGION", "eu-central-1")
			t.Setenv("AWS_MAX_ATTEMPTS", "1")
			endpoint := nobody(t)
			if c.status > 0 {
				endpoint = serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(c.status)
					fmt.Fprintf(w, "<ErrorResponse><Error><Code>%s</Code><Message>hunter2</Message></Error></ErrorResponse>", c.code)
				}))
			}
			t.Setenv(c.source, endpoint)
			if c.source == sts {
				token := filepath.Join(t.TempDir(), "token")
				if c.status >= 0 {
					if err := os.WriteFile(token, []byte("hunter2"), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/crawl")
				t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", token)
			}
			_, err := Open(t.Context(), "s3://bucket", Options{})
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
				t.Errorf("Open: %v, want %v that says %q", err, c.want, c.says)
			}
			if c.source != metadata && err != nil && strings.Contains(err.Error(), "no AWS credentials found") {
				t.Errorf("a source is configured, but Open says %v", err)
			}
		})
	}
}

// sources is a provider of credentials that retrieves none.
type sources []aws.CredentialSource

func (sources) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{}, errors.New("no")
}
func (s sources) ProviderSources() []aws.CredentialSource { return s }

// Off EC2, nothing answers at the address of the metadata service, so its silence is no outage unless a role is
// configured that needs it.
func TestASilentMetadataServiceIsAnOutageOnlyIfConfigured(t *testing.T) {
	machine, role := sources{aws.CredentialSourceIMDS}, sources{aws.CredentialSourceProfileNamedProvider, aws.CredentialSourceIMDS, aws.CredentialSourceSTSAssumeRole}
	timeout := fmt.Errorf("no EC2 IMDS role found, %w", &smithy.CanceledError{Err: context.DeadlineExceeded})
	broken := &smithyhttp.RequestSendError{Err: errors.New("no route to host")}
	for _, c := range []struct {
		from sources
		err  error
		want error
		says string
	}{
		{machine, timeout, store.ErrDenied, "its metadata service does not answer now"},
		{machine, broken, store.ErrDenied, "its metadata service does not answer now"},
		{machine, &smithy.GenericAPIError{Code: "Failed", Fault: smithy.FaultServer}, store.ErrUnavailable, "Failed"},
		{role, timeout, store.ErrUnavailable, "context deadline exceeded"},
		{role, broken, store.ErrUnavailable, "no route to host"},
		{role, &smithy.GenericAPIError{Message: "hunter2", Fault: smithy.FaultServer}, store.ErrUnavailable, "an error without a code"},
	} {
		if err := refusedCredentials(c.from, c.err); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v of %v: %v, want %v that says %q", c.err, c.from, err, c.want, c.says)
		}
	}
}

// nobody returns the URL of a port at which nobody listens.
func nobody(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}
