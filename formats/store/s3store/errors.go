package s3store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"crawlbatch.io/crawlbatch/formats/store"
)

// fault says what an error of the SDK means.
type fault struct {
	kind error // error of package store, or nil if none fits
	// unsettled means that nobody knows the outcome of a conditional write. The write may have taken
	// effect, or another writer may have won. The caller must read back the object to find out.
	unsettled bool
	says      string // cause and advice, free of secrets
}

// faults holds the error codes of servers that tell more than the HTTP status. The messages do not
// quote the server's text, which may contain signatures and key names.
var faults = map[string]fault{
	"NoSuchKey":    {kind: store.ErrNotFound},
	"NotFound":     {kind: store.ErrNotFound}, // code of a HEAD, whose response has no body
	"NoSuchBucket": {kind: store.ErrDenied, says: "there is no such bucket; create it or correct the address"},

	"AccessDenied":                 {kind: store.ErrDenied, says: "access denied; reading needs s3:GetObject and s3:ListBucket here, a crawl's store also s3:PutObject and s3:DeleteObject"},
	"AllAccessDisabled":            {kind: store.ErrDenied, says: "the owner disabled all access to the bucket"},
	"AccountProblem":               {kind: store.ErrDenied, says: "there is a problem with the account; ask the provider"},
	"InvalidAccessKeyId":           {kind: store.ErrDenied, says: "the store does not know the access key; check AWS_ACCESS_KEY_ID and the endpoint"},
	"XAdminUserNotFound":           {kind: store.ErrDenied, says: "the store does not know the access key; check AWS_ACCESS_KEY_ID and the endpoint"}, // an error code of versitygw
	"SignatureDoesNotMatch":        {kind: store.ErrDenied, says: "the signature does not match; check AWS_SECRET_ACCESS_KEY"},
	"ExpiredToken":                 {kind: store.ErrDenied, says: "the session token has expired; renew the credentials"},
	"InvalidToken":                 {kind: store.ErrDenied, says: "the session token is not valid; renew the credentials"},
	"RequestTimeTooSkewed":         {kind: store.ErrDenied, says: "the clock of this machine is off; set it (NTP)"},
	"PermanentRedirect":            {kind: store.ErrDenied, says: "the bucket is in another region; set AWS_REGION"},
	"AuthorizationHeaderMalformed": {kind: store.ErrDenied, says: "the bucket is in another region, or the credentials are for another service; set AWS_REGION"},
	"InvalidStorageClass":          {kind: store.ErrDenied, says: "the store does not know the storage class in the config"},

	"NotImplemented":                 {kind: store.ErrUnsupported, says: "the store does not implement the operation"},
	"QuotaExceeded":                  {kind: store.ErrFull, says: "the bucket's quota is used up"},
	"XMinioAdminBucketQuotaExceeded": {kind: store.ErrFull, says: "the bucket's quota is used up"},
	"InsufficientStorage":            {kind: store.ErrFull, says: "the server's disk is full"},
	"XMinioStorageFull":              {kind: store.ErrFull, says: "the server's disk is full"},

	"PreconditionFailed":         {unsettled: true, says: "precondition failed"},
	"ConditionalRequestConflict": {unsettled: true, says: "another request was in progress"},
	"OperationAborted":           {unsettled: true, says: "another request was in progress"},
	"NoSuchUpload":               {unsettled: true, says: "the upload of parts ended"},
	"RequestTimeout":             {kind: store.ErrUnavailable, unsettled: true, says: "the body came too slowly"},
	"SlowDown":                   {kind: store.ErrUnavailable, unsettled: true, says: "asked to slow down"},
}

// judge says what an error of the SDK means. If the server has not answered, the store counts as
// unavailable, and a write as unsettled.
func judge(err error) fault {
	if errors.Is(err, errWeak) {
		return fault{kind: store.ErrUnsupported, says: "its answers have weak ETags (W/\"…\"), with which no conditional write can succeed; a proxy before the store makes them: " +
			"turn off its compression of responses (nginx: gzip off; Cloudflare: respect strong ETags), or set AWS_ENDPOINT_URL_S3 to the store itself"}
	}
	var api smithy.APIError
	status := 0
	if response, ok := errors.AsType[*awshttp.ResponseError](err); ok {
		status = response.HTTPStatusCode()
	}
	if errors.As(err, &api) {
		if f, ok := faults[api.ErrorCode()]; ok {
			if f.says != "" {
				f.says += " (" + api.ErrorCode() + ")"
			}
			return f
		}
	}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fault{kind: store.ErrDenied, says: fmt.Sprintf("access denied; check credentials and the bucket's policy (%s)", answer(api, status))}
	case status == http.StatusMovedPermanently || status == http.StatusTemporaryRedirect:
		return fault{kind: store.ErrDenied, says: fmt.Sprintf("the bucket is in another region; set AWS_REGION (%s)", answer(api, status))}
	case status == http.StatusPreconditionFailed || status == http.StatusConflict:
		return fault{unsettled: true, says: answer(api, status)}
	case status == http.StatusNotImplemented:
		return fault{kind: store.ErrUnsupported, says: answer(api, status)}
	case status == http.StatusInsufficientStorage:
		return fault{kind: store.ErrFull, says: answer(api, status)}
	case status == http.StatusTooManyRequests || status >= 500:
		return fault{kind: store.ErrUnavailable, unsettled: true, says: answer(api, status)}
	case status >= 300:
		return fault{says: "the store refused the request: " + answer(api, status)}
	case isCertificate(err):
		return fault{kind: store.ErrDenied, says: "the server's certificate is not trusted; check the endpoint or set AWS_CA_BUNDLE"}
	default: // all other errors, including an incomplete body after status 200
		return fault{kind: store.ErrUnavailable, unsettled: true, says: plain(err)}
	}
}

func answer(api smithy.APIError, status int) string {
	if api == nil || api.ErrorCode() == "" {
		return fmt.Sprintf("status %d", status)
	}
	return fmt.Sprintf("%s, status %d", shortLine(api.ErrorCode()), status)
}

func isCertificate(err error) bool {
	_, verification := errors.AsType[*tls.CertificateVerificationError](err)
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, hostname := errors.AsType[x509.HostnameError](err)
	return verification || authority || hostname
}

// plain returns the cause of a network error in one line, without the URL of the request.
func plain(err error) string {
	if of, ok := errors.AsType[*url.Error](err); ok {
		err = of.Err
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return shortLine(op.Error())
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return shortLine(err.Error())
		}
		err = inner
	}
}

// shortLine turns a text from the server into one short line.
func shortLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "") + "…"
	}
	return text
}

// fail returns the error of a call. The error does not wrap the error of the SDK, which may quote
// requests and the server's text.
func fail(ctx context.Context, call, key string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s %q: %w", call, key, ctx.Err())
	}
	f := judge(err)
	switch {
	case f.kind == nil:
		return fmt.Errorf("%s %q: %s", call, key, f.says)
	case f.says == "":
		return fmt.Errorf("%s %q: %w", call, key, f.kind)
	default:
		return fmt.Errorf("%s %q: %w: %s", call, key, f.kind, f.says)
	}
}
