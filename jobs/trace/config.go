package trace

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// ErrConfig means that a variable of OpenTelemetry has a value that cannot be used.
var ErrConfig = errors.New("not a valid OpenTelemetry variable")

// settings holds what this package reads itself of OpenTelemetry's environment variables. The SDK
// and its exporter read the others.
type settings struct {
	endpoint string // collector's address as in messages: without password and query; "": nothing is traced
	timeout  time.Duration
	ratio    float64 // share of URLs that are traced
}

const (
	defaultTimeout = 10 * time.Second
	defaultRatio   = 0.001
)

// read reads the environment variables, and checks the values that the exporter would replace by
// defaults in silence. An error names the variable, but never its value, which may be a secret.
func read() (s settings, err error) {
	get := func(name string) string { return strings.TrimSpace(os.Getenv(name)) }
	fail := func(name, text string) (settings, error) {
		return settings{}, fmt.Errorf("%s: %s: %w", name, text, ErrConfig)
	}
	endpoint := cmp.Or(get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), get("OTEL_EXPORTER_OTLP_ENDPOINT"))
	if strings.EqualFold(get("OTEL_SDK_DISABLED"), "true") || strings.EqualFold(get("OTEL_TRACES_EXPORTER"), "none") || endpoint == "" {
		return s, nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fail("OTEL_EXPORTER_OTLP_ENDPOINT", "it must be http://HOST:PORT or https://HOST:PORT")
	}
	s.endpoint = u.Scheme + "://" + u.Host + u.Path
	if p := cmp.Or(get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), get("OTEL_EXPORTER_OTLP_PROTOCOL")); p == "grpc" {
		return fail("OTEL_EXPORTER_OTLP_PROTOCOL", "crawlbatch speaks OTLP over HTTP only, mostly port 4318")
	}
	s.timeout = defaultTimeout
	if t := cmp.Or(get("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT"), get("OTEL_EXPORTER_OTLP_TIMEOUT")); t != "" {
		ms, err := strconv.ParseUint(t, 10, 31)
		if err != nil || ms == 0 {
			return fail("OTEL_EXPORTER_OTLP_TIMEOUT", "it must be a number of milliseconds")
		}
		s.timeout = time.Duration(ms) * time.Millisecond
	}
	switch sampler := get("OTEL_TRACES_SAMPLER"); {
	case strings.HasSuffix(sampler, "always_on"):
		s.ratio = 1
	case strings.HasSuffix(sampler, "always_off"):
		s.ratio = 0
	default:
		s.ratio = defaultRatio
		if arg := get("OTEL_TRACES_SAMPLER_ARG"); arg != "" {
			if s.ratio, err = strconv.ParseFloat(arg, 64); err != nil || !(s.ratio >= 0 && s.ratio <= 1) {
				return fail("OTEL_TRACES_SAMPLER_ARG", "it must be a number from 0 to 1, the share of URLs to trace")
			}
		}
	}
	return s, nil
}
