// Package webhook receives calls of webhooks. It authenticates each call, limits their rate, and stores a run of the
// webhook's job. Package heartbeat then runs it.
package webhook
