// Package heartbeat starts turns by the clock: scheduled jobs, the proactive prompt and the runs of webhooks. It also
// ends stale turns and prunes old data.
//
// The package stores a run before it submits the run's turn, so that a crash neither loses a run nor starts it twice.
// Package orchestrator runs the turns, package bot shows results, and internal/store stores jobs and runs. ports.go
// declares the interfaces to these packages.
//
// All decisions compare wall clocks. After a suspend or a change of the clock, the scheduler notices the new time
// within Options.Poll.
package heartbeat
