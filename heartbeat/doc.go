// Package heartbeat starts turns at certain times: for scheduled jobs, for the proactive prompt, and for webhooks. It
// also ends turns that run too long, and deletes old data.
//
// The package stores each run of a job before it submits the turn of the run. A crash therefore neither loses a run nor
// starts it twice. Package orchestrator runs the turns, package bot shows their results, and internal/store stores jobs
// and runs. The file ports.go contains the interfaces to these packages.
//
// All decisions use the wall clock. After the machine was suspended, or the clock was changed, the scheduler notices
// the new time within Options.Poll.
package heartbeat
