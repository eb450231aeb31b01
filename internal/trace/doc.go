// Package trace sends traces and metrics of turns to an OpenTelemetry collector. It follows OpenTelemetry's conventions
// for generative AI: a span for each turn and each of its tools, and metrics of tokens, cost and duration.
//
// It sends OTLP over HTTP as JSON. The exporters of OpenTelemetry would link gRPC, which adds 10 MB to the program and
// 7 MB to its idle memory. The package reads no environment variables, follows no redirects, and calls only the
// configured address. Without an address it only counts metrics.
package trace
