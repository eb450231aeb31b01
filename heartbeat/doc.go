// Package heartbeat starts turns by the clock: scheduled jobs, the proactive prompt and the runs of webhooks. It also ends
// stale turns and prunes old data.
//
// It stores a run before it submits the turn of the run, so that no crash loses a run or starts one twice. Package
// orchestrator runs the turns, package bot shows results, internal/store stores jobs and runs; ports.go says what this
// package needs of them.
//
// All decisions compare wall clocks. After a suspend or a change of the clock, the scheduler needs at most Options.Poll
// to see the new time.
package heartbeat
