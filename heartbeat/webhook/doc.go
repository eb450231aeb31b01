// Package webhook receives the calls of webhooks: it authenticates a delivery, limits its rate and stores a run of the
// hook's job, which package heartbeat runs.
package webhook
