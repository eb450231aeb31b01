package orchestrator

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"ductor/cli"
)

// JobID identifies a job and never changes. ConfiguredJob returns the IDs of jobs in the configuration.
type JobID string

// JobKind selects what starts the runs of a job.
type JobKind string

// JobKind values. The store contains them.
const (
	JobScheduled JobKind = "schedule" // the job's schedule
	JobHeartbeat JobKind = "pulse"    // a schedule of the proactive prompt; never while a turn uses its session
	JobHook      JobKind = "hook"     // a webhook; the job has no schedule
)

// ConfiguredJob returns the ID of a job of the configuration.
func ConfiguredJob(kind JobKind, name string) JobID {
	if kind == JobHook || kind == JobHeartbeat {
		return JobID(string(kind) + "/" + name)
	}
	return JobID("config/" + name)
}

// Values of Job.Session.
const (
	OwnSession    = "own"    // the job's own session, which continues from run to run
	SharedSession = "shared" // the conversation's current session
)

// Values of Job.Missed. They select how to handle runs that were due while ductor was not running. MissedOnce is the
// default.
const (
	MissedSkip = "skip" // no run
	MissedOnce = "once" // one run for all of them
	MissedAll  = "all"  // a run for each of them, one after the other
)

// Values of Job.Overlap. They select how to handle a run that is due while an earlier run of its job is open.
// OverlapSkip is the default.
const (
	OverlapSkip  = "skip"
	OverlapQueue = "queue" // the run waits; if MostQueuedRuns wait, new runs are skipped
)

// Values of Job.QuietPolicy. They select how to handle a run that is due in quiet hours. QuietHold is the default.
const (
	QuietHold = "hold" // the run waits until the quiet hours end
	QuietSkip = "skip"
)

// MostQueuedRuns limits the waiting runs of a job.
const MostQueuedRuns = 20

// Job is a prompt that runs on a schedule or by a webhook.
type Job struct {
	ID           JobID
	Kind         JobKind
	Configured   bool // defined in the configuration; users cannot edit or delete it in a chat
	Paused       bool
	Conversation ConversationID // where the turns run and where the results are shown
	Person       PersonID       // the user who created the job
	Name         string
	Prompt       string
	Created      time.Time
	JobTiming
	JobTurn
}

// JobTiming is the schedule of a job and its policies.
type JobTiming struct {
	Schedule string `toml:"schedule"` // in the syntax of heartbeat/schedule
	When     string // Schedule and Zone in words; not stored, but set by Jobs
	Missed   string `toml:"missed" default:"once" check:"once|skip|all"`
	Overlap  string `toml:"overlap" default:"skip" check:"skip|queue"`
	QuietHours
}

// QuietHours are the hours of a day in which the schedule of a job does not start runs. Users can still start it.
type QuietHours struct {
	Zone string `toml:"zone"` // IANA name; empty means the machine's zone
	Hours
	QuietPolicy string `toml:"quiet_policy" default:"hold" check:"hold|skip"`
}

// Check implements config.checker.
func (q QuietHours) Check(problem func(key, format string, args ...any)) {
	if _, err := time.LoadLocation(q.Zone); err != nil || q.Zone == "Local" {
		problem("zone", "%q is no time zone such as Europe/Paris", q.Zone)
	}
}

// Hours are a part of each day. Both ends are empty, or both are times such as "22:00". QuietTo is on the next day if
// it is earlier than QuietFrom.
type Hours struct {
	QuietFrom string `toml:"quiet_from"`
	QuietTo   string `toml:"quiet_to"`
}

// Check implements config.checker.
func (h Hours) Check(problem func(key, format string, args ...any)) {
	for key, at := range map[string]string{"quiet_from": h.QuietFrom, "quiet_to": h.QuietTo} {
		_, err := time.Parse("15:04", at)
		switch {
		case at == "" && h.Quiet():
			problem(key, "quiet hours need quiet_from and quiet_to")
		case at != "" && err != nil:
			problem(key, `%q should be a time of day such as "22:00"`, at)
		}
	}
}

// Quiet reports whether quiet hours are set.
func (h Hours) Quiet() bool { return h.QuietFrom != "" || h.QuietTo != "" }

// JobTurn configures the turns of a job. Empty fields use the conversation's choices.
type JobTurn struct {
	Session string        `toml:"session" default:"own" check:"own|shared"`
	Agent   cli.Agent     `toml:"agent"`
	Model   cli.ModelID   `toml:"model"` // requires Agent, like Effort
	Effort  cli.Effort    `toml:"effort"`
	Dir     string        `toml:"dir" check:"path"`                    // absolute path
	Sandbox string        `toml:"sandbox" check:"off|docker"`          // empty means the policy of the project
	Timeout time.Duration `toml:"timeout" check:"0..168h"`             // 0 means the agent's default
	Rights  Rights        `toml:",inline"`                             // RightsOfJob or RightsOfPress
	Retries int           `toml:"retries" check:"0..10"`               // how often a failed run is retried
	Backoff time.Duration `toml:"backoff" default:"1m" check:"1s..6h"` // pause before the first retry; it doubles
	OKWord  string        // the chat does not show an answer that consists only of this word
}

// Check implements config.checker.
func (t JobTurn) Check(problem func(key, format string, args ...any)) {
	if t.Agent == "" && (t.Model != "" || t.Effort != "") {
		problem("agent", "model and effort belong to an agent; name that agent here")
	}
	if t.Session == SharedSession && t.Dir != "" {
		problem("dir", `the chat's session has its directory; set session = "own"`)
	}
	if t.Session == SharedSession && t.Sandbox == SandboxDocker {
		problem("sandbox", `a job in the chat's session runs where that session does; set session = "own"`)
	}
}

// JobStatus is a job with its next run and its latest results.
type JobStatus struct {
	Job     Job
	Next    time.Time // zero for none
	Planned time.Time // time at which Next was computed
	JobResult
	Runs    int     // ended runs, without skipped ones
	CostUSD float64 // cost of all runs
	Last    *JobRun // the latest run that ended or was skipped; nil for none
	Open    int     // number of waiting and running runs
}

// JobResult is the result of a job that the chat shows. It is zero if the chat shows none, or a failure.
type JobResult struct {
	Digest string     // Digest of the answer
	Shown  cli.TurnID // the turn whose card shows the answer
	Same   int        // number of later runs with the same answer
}

// JobRunID identifies one run of a job. It is computed from the cause of the run, so that a repeated cause, for example
// after a crash, has the same ID.
type JobRunID string

// DueRun returns the ID of the run that is due at this time.
func DueRun(job JobID, due time.Time) JobRunID {
	return JobRunID(fmt.Sprintf("%s@%s", job, due.UTC().Format(time.RFC3339)))
}

// KeyedRun returns the ID of a run that a user or a webhook delivery starts. key identifies the request.
func KeyedRun(job JobID, key string) JobRunID { return JobRunID(fmt.Sprintf("%s!%s", job, key)) }

// JobCause is the trigger of a run.
type JobCause string

// The causes of a run.
const (
	CauseSchedule JobCause = "schedule"
	CauseMissed   JobCause = "missed" // one run for runs that were due while ductor was not running
	CauseManual   JobCause = "hand"   // a user pressed Run now
	CauseHook     JobCause = "hook"
)

// JobRunState is the state of a run. States change in the order of the list below. Only a retry changes a run back,
// from RunAsked to RunWaiting.
type JobRunState string

// The states of a run.
const (
	RunWaiting JobRunState = "waiting" // stored; ductor may submit the turn
	RunAsked   JobRunState = "asked"   // ductor submitted the turn
	RunDone    JobRunState = "done"
	RunFailed  JobRunState = "failed"
	RunAborted JobRunState = "aborted" // a user ended the turn, or removed it from the queue
	RunSkipped JobRunState = "skipped" // a policy skipped the run; Reason explains it
)

// Open reports whether a run has not ended.
func (s JobRunState) Open() bool { return s == RunWaiting || s == RunAsked }

// JobRun is one run of a job.
type JobRun struct {
	ID        JobRunID
	Job       JobID
	Cause     JobCause
	Due       time.Time
	StandsFor int    // number of due times that the run covers; 1 unless some were missed
	Prompt    string // the prompt, which does not change after the run was stored
	Attempt   int    // number of the attempt, from 1
	NotBefore time.Time
	State     JobRunState
	Asked     time.Time // when the turn was submitted; zero before
	Ended     time.Time // zero while the run is open
	Result    JobRunResult
}

// JobRunResult is the result of a run.
type JobRunResult struct {
	Text     string  // the answer as the chat shows it
	Reason   string  // a sentence that explains why the run failed or was skipped
	Changed  bool    // the answer differs from the previous one
	Notified bool    // the chat shows the result, or need not show it
	CostUSD  float64 // cost of all attempts
}

const jobTurn = "job-"

// Turn returns the turn ID of the current attempt.
func (r JobRun) Turn() cli.TurnID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", r.ID, r.Attempt))
	return cli.TurnID(jobTurn + hex.EncodeToString(sum[:12]))
}

// IsJobTurn reports whether a turn belongs to a job.
func IsJobTurn(id cli.TurnID) bool { return strings.HasPrefix(string(id), jobTurn) }
