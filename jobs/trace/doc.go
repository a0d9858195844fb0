// Package trace sends OpenTelemetry spans of tasks, and of a sample of URLs, to a collector.
//
// Standard environment variables of OpenTelemetry name the collector. If neither
// OTEL_EXPORTER_OTLP_ENDPOINT nor OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set, New returns a nil
// *Tracer, whose methods do nothing. The input is the attempts at tasks and the rows of their
// finished URLs. The output is OTLP over HTTP, sent by OpenTelemetry's SDK in batches.
//
// Tracing never slows a crawl: spans wait in the SDK's bounded queue. A span is dropped and counted
// if the queue is full, or if the collector does not take its batch. Spans contain hosts and paths.
// They contain neither the queries of URLs nor the texts of errors, which may hold secrets. Package
// trace imports stages and formats.
package trace
