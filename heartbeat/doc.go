// Package heartbeat is everything that time starts, or the world outside by a webhook: scheduled prompts, a
// proactive prompt, the sweep of runs that take far too long, and forgetting what is old.
//
// It decides when something is due and remembers it before it is asked for, so that a crash at any moment makes
// nothing run twice and nothing get lost. It does not run turns (package orchestrator does), shows nothing
// (package bot does) and keeps nothing itself (internal/store does); ports.go says what it needs of them.
//
// All decisions compare wall clocks. A machine that slept for hours, or whose clock was set, finds out within
// Options.Nap.
package heartbeat
