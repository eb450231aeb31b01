// Package trace sends what turns did to an OpenTelemetry collector, by the conventions for generative AI: a span for
// each turn and each of its tools, and metrics of tokens, cost and duration.
//
// It writes OTLP over HTTP as JSON. The exporters of OpenTelemetry would add 10 MB to the program and 7 MB to its
// memory at rest, also where nothing is traced, because they link gRPC. It reads no variable of the environment,
// follows no redirect and calls nothing but the configured address. Without that, none of its code runs.
package trace
