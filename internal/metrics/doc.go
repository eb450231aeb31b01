// Package metrics serves ductor's metrics at /metrics in the text format of Prometheus: counters of turns, which
// package trace also exports to OpenTelemetry, counters of calls to Telegram, and the current state.
//
// Labels have few values: names of agents, models, methods and outcomes. No label contains a chat, a user or a message.
package metrics
