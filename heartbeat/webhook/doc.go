// Package webhook answers the calls of webhooks: it authenticates a delivery, limits its rate and records a run of the
// hook's job. Package heartbeat runs it.
package webhook
