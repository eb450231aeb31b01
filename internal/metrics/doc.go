// Package metrics shows at /metrics what ductor does, in the text format of Prometheus: counters of turns, which package trace
// counts for OpenTelemetry too, counters of calls to Telegram, and how things are at the moment of a question.
//
// Labels have few values: names of agents, models, methods and outcomes. None is of a chat, a user or what they write.
package metrics
