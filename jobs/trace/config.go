package trace

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// ErrConfig means that a variable of OpenTelemetry has a value that cannot be used.
var ErrConfig = errors.New("not a valid OpenTelemetry variable")

// settings holds the values of OpenTelemetry's environment variables.
type settings struct {
	endpoint string // URL to which batches are sent; "": nothing is traced
	headers  http.Header
	timeout  time.Duration
	resource []attribute
	ratio    float64 // share of URLs that are traced
}

const (
	tracesPath     = "/v1/traces"
	defaultTimeout = 10 * time.Second
	defaultRatio   = 0.001
)

// read reads the environment variables. An error names the variable, but never its value, which may
// be a secret.
func read(lookup func(string) (string, bool), version string) (s settings, err error) {
	get := func(name string) string {
		v, _ := lookup(name)
		return strings.TrimSpace(v)
	}
	fail := func(name, text string) (settings, error) {
		return settings{}, fmt.Errorf("%s: %s: %w", name, text, ErrConfig)
	}
	exact := get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	base := get("OTEL_EXPORTER_OTLP_ENDPOINT")
	if strings.EqualFold(get("OTEL_SDK_DISABLED"), "true") || strings.EqualFold(get("OTEL_TRACES_EXPORTER"), "none") || exact == "" && base == "" {
		return s, nil
	}
	s.endpoint = exact
	if exact == "" {
		s.endpoint = strings.TrimRight(base, "/") + tracesPath
	}
	if u, err := url.Parse(s.endpoint); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fail("OTEL_EXPORTER_OTLP_ENDPOINT", "it must be http://HOST:PORT or https://HOST:PORT")
	}
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
	s.headers = http.Header{}
	for _, h := range pairs(cmp.Or(get("OTEL_EXPORTER_OTLP_TRACES_HEADERS"), get("OTEL_EXPORTER_OTLP_HEADERS"))) {
		s.headers.Set(h.Key, *h.Value.String)
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
	name := get("OTEL_SERVICE_NAME")
	for _, a := range pairs(get("OTEL_RESOURCE_ATTRIBUTES")) {
		if a.Key == "service.name" {
			name = cmp.Or(name, *a.Value.String)
		} else {
			s.resource = append(s.resource, a)
		}
	}
	s.resource = append(s.resource, text("service.name", cmp.Or(name, "crawlbatch")), text("service.version", version))
	return s, nil
}

// pairs reads a list key=value,… with escapes as in URLs. It skips invalid pairs, as OpenTelemetry
// asks.
func pairs(list string) (all []attribute) {
	for _, pair := range strings.Split(list, ",") {
		key, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if key = strings.TrimSpace(key); ok && key != "" && err == nil {
			all = append(all, text(key, value))
		}
	}
	return all
}
