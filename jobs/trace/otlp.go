package trace

import "strconv"

// These types are the messages of opentelemetry-proto (trace/v1) in their JSON encoding: field names in
// lowerCamelCase, identifiers in hex, integers of 64 bits as text, enums as numbers.

type export struct {
	ResourceSpans []resourceSpans `json:"resourceSpans"`
}

type resourceSpans struct {
	Resource   resource     `json:"resource"`
	ScopeSpans []scopeSpans `json:"scopeSpans"`
}

type resource struct {
	Attributes []attribute `json:"attributes"`
}

type scopeSpans struct {
	Scope scope  `json:"scope"`
	Spans []span `json:"spans"`
}

type scope struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// The values of span.Kind and status.Code.
const (
	kindInternal = 1
	kindClient   = 3
	codeError    = 2
)

type span struct {
	TraceID    string      `json:"traceId"`
	SpanID     string      `json:"spanId"`
	Parent     string      `json:"parentSpanId,omitempty"`
	Name       string      `json:"name"`
	Kind       int         `json:"kind"`
	Start      string      `json:"startTimeUnixNano"`
	End        string      `json:"endTimeUnixNano"`
	Attributes []attribute `json:"attributes"`
	Status     status      `json:"status"`
}

type status struct {
	Code    int    `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

type attribute struct {
	Key   string `json:"key"`
	Value value  `json:"value"`
}

type value struct {
	String *string `json:"stringValue,omitempty"`
	Int    string  `json:"intValue,omitempty"`
}

func text(key, v string) attribute { return attribute{key, value{String: &v}} }

func number(key string, n int64) attribute {
	return attribute{key, value{Int: strconv.FormatInt(n, 10)}}
}

// nanos writes a time in milliseconds since 1970 as OTLP does.
func nanos(ms int64) string { return strconv.FormatInt(max(ms, 0)*1_000_000, 10) }
