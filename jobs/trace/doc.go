// Package trace sends OpenTelemetry spans of tasks, and of a sample of URLs, to a collector.
//
// The standard variables of OpenTelemetry say where: without OTEL_EXPORTER_OTLP_ENDPOINT or
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, New returns a nil *Tracer, whose methods do nothing. The input is
// the attempts at tasks and the rows of their finished URLs. The output is OTLP over HTTP, encoded as
// JSON (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding), in batches. OpenTelemetry's
// own exporter is not used, because protobuf and gRPC would add several megabytes to the binary.
//
// Tracing never slows a crawl: spans wait in a bounded queue, and those that find the queue full, or
// whose batch the collector does not take, are dropped and counted. Spans name hosts and paths, but
// neither queries of URLs nor errors' texts, because these may hold secrets. Package trace imports
// stages and formats.
package trace
