// Package metrics serves ductor's metrics at /metrics in the text format of Prometheus: counters of turns, which
// package trace also exports to OpenTelemetry, counters of calls to Telegram, and the current state.
//
// Labels contain only names of agents, models, methods and outcomes, so each label has few values. They contain no
// chats, users or messages.
package metrics
