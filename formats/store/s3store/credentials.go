package s3store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"crawlbatch.io/crawlbatch/formats/store"
)

// refusedCredentials returns the error of Open if the SDK could not retrieve credentials from a provider. It
// is store.ErrUnavailable if the source of the credentials is only away, and otherwise store.ErrDenied.
func refusedCredentials(from aws.CredentialsProvider, err error) error {
	silent, refused := sourceFails(err)
	cause := sourceSays(err)
	switch isConfigured := !onlyMetadata(from); {
	case refused || silent && isConfigured:
		return fmt.Errorf("%w: the service that gives out the AWS credentials (STS, or that of the machine or pod) gives none now: %s", store.ErrUnavailable, cause)
	case isConfigured:
		return fmt.Errorf("%w: the configured source of AWS credentials gave none; check AWS_ROLE_ARN, AWS_WEB_IDENTITY_TOKEN_FILE, AWS_CONTAINER_CREDENTIALS_… or the profile, whichever is set, and what the role trusts: %s", store.ErrDenied, cause)
	}
	advice := ""
	if silent {
		advice = "; if it has one, its metadata service does not answer now: run this again"
	}
	return fmt.Errorf("%w: no AWS credentials found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give the machine a role%s", store.ErrDenied, advice)
}

// onlyMetadata reports whether no source of credentials is configured. The SDK then asks the metadata service
// that machines in EC2 have. Elsewhere, nothing answers at its address, which looks like an outage.
func onlyMetadata(from aws.CredentialsProvider) bool {
	known, ok := from.(aws.CredentialProviderSource)
	return ok && slices.Equal(known.ProviderSources(), []aws.CredentialSource{aws.CredentialSourceIMDS})
}

// sourceFails says how a source of credentials failed for a reason that passes by itself: it did not answer
// (silent), or it answered that it is overloaded or out of order (refused). Neither is true if the source
// refused the credentials, or if what it needs is missing, such as the file of a token.
func sourceFails(err error) (silent, refused bool) {
	if response, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		status := response.HTTPStatusCode()
		refused = status >= 500 || status == http.StatusTooManyRequests
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		_, throttled := retry.DefaultThrottleErrorCodes[api.ErrorCode()]
		identity := api.ErrorCode() == "IDPCommunicationError" // STS did not reach the issuer of the token
		return false, refused || throttled || identity || api.ErrorFault() == smithy.FaultServer
	}
	_, unsent := errors.AsType[*smithyhttp.RequestSendError](err)
	return (unsent || errors.Is(err, context.DeadlineExceeded)) && !isCertificate(err), refused
}

// sourceSays returns the cause of a failure in one line, without the text of a server.
func sourceSays(err error) string {
	status := 0
	if response, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		status = response.HTTPStatusCode()
	}
	var api smithy.APIError
	switch known := errors.As(err, &api); {
	case known && api.ErrorCode() != "" && status == 0:
		return shortLine(api.ErrorCode())
	case status > 0 && known && api.ErrorCode() != "UnknownError": // the SDK's code for an answer without one
		return answer(api, status)
	case status > 0:
		return answer(nil, status)
	case known:
		return "an error without a code"
	}
	return plain(err)
}
