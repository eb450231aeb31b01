// Package webhook receives calls of webhooks. It authenticates each call, limits the rate of calls, and stores a run of
// the webhook's job for each call. Package heartbeat starts these runs.
package webhook
