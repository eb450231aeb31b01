package orchestrator

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ductor/cli"
	"ductor/lang"
)

// JobID identifies a job and never changes.
type JobID string

// JobKind is what starts the runs of a job: a schedule or a webhook.
type JobKind string

// JobKind values. The store contains these strings, so they must not change.
const (
	JobScheduled JobKind = "schedule" // the schedule in Job.Schedule
	// JobHeartbeat is a schedule of the configured heartbeat prompt. Such a job never runs while a turn uses its
	// session.
	JobHeartbeat JobKind = "pulse"
	JobHook      JobKind = "hook" // a webhook; the job has no schedule
)

// ConfiguredJob returns the ID of a job that the configuration defines.
func ConfiguredJob(kind JobKind, name string) JobID {
	if kind == JobHook || kind == JobHeartbeat {
		return JobID(string(kind) + "/" + name)
	}
	return JobID(configuredJob + name)
}

const configuredJob = "config/"

// Configured reports whether the configuration defines the job.
func (id JobID) Configured() bool {
	kind, _, _ := strings.Cut(string(id), "/")
	return kind == string(JobHook) || kind == string(JobHeartbeat) || strings.HasPrefix(string(id), configuredJob)
}

// Values of Job.Session.
const (
	OwnSession    = "own"    // a session that only this job uses, in all its runs
	SharedSession = "shared" // the current session of the conversation
)

// Values of Job.Missed. They select how to handle runs that were due while ductor was not running. MissedOnce is the
// default.
const (
	MissedSkip = "skip" // skips all missed runs
	MissedOnce = "once" // runs once instead of all missed runs
	MissedAll  = "all"  // runs once for each missed run, one after the other
)

// Values of Job.Overlap. They select what happens to a run that is due while another run of the same job is still
// waiting or running. OverlapSkip is the default.
const (
	OverlapSkip  = "skip"
	OverlapQueue = "queue" // the run waits; if MostQueuedRuns already wait, the run is skipped
)

// Values of Job.QuietPolicy. They select how to handle a run that is due in quiet hours. QuietHold is the default.
const (
	QuietHold = "hold" // the run waits until the quiet hours end
	QuietSkip = "skip"
)

// MostQueuedRuns limits how many runs of one job can wait.
const MostQueuedRuns = 20

// Job is a prompt that runs on a schedule, or whenever a webhook is called.
type Job struct {
	ID           JobID
	Kind         JobKind
	Configured   bool // defined in the configuration file, so users cannot edit or delete it in a chat
	Paused       bool
	Conversation ConversationID // the conversation that runs the turns and shows the results
	Person       PersonID       // the user who created the job
	Name         string
	Prompt       string
	Created      time.Time
	JobTiming
	JobTurn
}

// JobTiming defines when a job runs.
type JobTiming struct {
	Schedule string `toml:"schedule"` // in the syntax of heartbeat/schedule
	When     string // Schedule and Zone in words, for users; set by the methods of Jobs, and not stored
	Missed   string `toml:"missed" default:"once" check:"once|skip|all"`
	Overlap  string `toml:"overlap" default:"skip" check:"skip|queue"`
	QuietHours
}

// QuietHours are the hours of a day in which a job's schedule starts no runs. A user can still start a run.
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

// Hours is a period that repeats each day. QuietFrom and QuietTo are times such as "22:00". If QuietTo is earlier than
// QuietFrom, the period ends on the next day. Both fields must be set, or neither.
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

// JobTurn configures the turns of a job. If a field is empty, the choice of the conversation applies.
type JobTurn struct {
	Session string        `toml:"session" default:"own" check:"own|shared"`
	Agent   cli.Agent     `toml:"agent"`
	Model   cli.ModelID   `toml:"model"` // requires Agent, like Effort
	Effort  cli.Effort    `toml:"effort"`
	Dir     string        `toml:"dir" check:"path"`                    // absolute path
	Sandbox string        `toml:"sandbox" check:"off|docker"`          // empty means the policy of the project
	Timeout time.Duration `toml:"timeout" check:"0..168h"`             // 0 means the agent's default
	Rights  Rights        `toml:",inline"`                             // Rights.Of is RightsOfJob or RightsOfPress
	Retries int           `toml:"retries" check:"0..10"`               // how often ductor retries a failed run
	Backoff time.Duration `toml:"backoff" default:"1m" check:"1s..6h"` // first pause; it doubles with each retry
	OKWord  string        // the chat does not show an answer that consists of this word only
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

const laterJob = "later-"

// MayRunLater reports whether a job can run the prompt of the turn again. Jobs cannot run agents' commands. The turn of
// a job does not need another job, because the scheduler itself repeats the turns of jobs.
func (t Turn) MayRunLater() bool { return t.Wants.Task == cli.TaskPrompt && !IsJobTurn(t.ID) }

// RepeatedAt returns a job with the ID LaterJob(t.ID), which runs the prompt of the turn again at the given time.
// effort must be the effort for the turn's agent and model. The permission mode of the job is at most maxMode. If
// maxMode is empty, the job does not get the rights of the chat.
func (t Turn) RepeatedAt(at time.Time, effort cli.Effort, maxMode cli.PermissionMode) Job {
	j := Job{
		ID: LaterJob(t.ID), Conversation: t.Prompt.Conversation, Person: t.Prompt.Person, Prompt: t.Prompt.OnlyText(),
		JobTiming: JobTiming{
			Schedule: "at " + at.UTC().Format(time.DateTime), QuietHours: QuietHours{Zone: "UTC"},
		},
		JobTurn: JobTurn{Session: SharedSession, Agent: t.Agent, Model: t.Model, Effort: effort,
			Timeout: t.Wants.Timeout},
	}
	if maxMode != "" {
		j.Rights = Rights{Of: RightsOfPress, Mode: maxMode}
	}
	return j
}

// LaterJob returns the ID of the job that runs the prompt of a turn again when a usage limit has ended.
func LaterJob(id cli.TurnID) JobID { return JobID(laterJob + string(id)) }

// Repeats returns the turn whose prompt the job runs again. It returns false unless LaterJob returned this ID.
func (id JobID) Repeats() (cli.TurnID, bool) {
	turn, later := strings.CutPrefix(string(id), laterJob)
	return cli.TurnID(turn), later
}

// JobStatus is a job with its next run and its latest results.
type JobStatus struct {
	Job     Job
	Next    time.Time // zero for none
	Planned time.Time // when Next was computed
	JobResult
	Runs    int     // number of ended runs, not counting skipped ones
	CostUSD float64 // cost of all runs
	Last    *JobRun // the latest run that ended or was skipped; nil before the first
	Open    int     // number of waiting and running runs
	Oldest  *JobRun // the oldest waiting or running run; nil for none
}

// Finished reports whether a job has run at its only time. A user can still run or edit it.
func (st JobStatus) Finished() bool {
	return st.Job.Kind == JobScheduled && !st.Job.Paused && st.Next.IsZero() && st.Open == 0
}

// JobResult is the latest answer of a job that the chat shows. It is zero if the chat shows no answer, or if the latest
// run failed.
type JobResult struct {
	Digest string     // hash of the answer; see Digest
	Shown  cli.TurnID // the turn whose card shows the answer
	Same   int        // number of later runs that had the same answer
}

// JobRunID identifies one run of a job. It is derived from the event that starts the run, for example a due time. So
// the ID is the same if ductor handles the event twice because of a crash.
type JobRunID string

// DueRun returns the ID of the run that is due at this time.
func DueRun(job JobID, due time.Time) JobRunID {
	return JobRunID(fmt.Sprintf("%s@%s", job, due.UTC().Format(time.RFC3339)))
}

// KeyedRun returns the ID of a run that a user or a webhook starts. The key identifies the press of the button, or the
// call of the webhook.
func KeyedRun(job JobID, key string) JobRunID { return JobRunID(fmt.Sprintf("%s!%s", job, key)) }

// JobCause is the reason why a run was started.
type JobCause string

// JobCause values.
const (
	CauseSchedule JobCause = "schedule"
	CauseMissed   JobCause = "missed" // ductor was not running when runs were due; this run replaces them
	CauseManual   JobCause = "hand"   // a user pressed the button Run now
	CauseHook     JobCause = "hook"
)

// JobRunState is the state of a run. A run changes from a state to a later one in the list below. Only a retry changes
// RunAsked back to RunWaiting.
type JobRunState string

// JobRunState values.
const (
	RunWaiting JobRunState = "waiting" // the store contains the run, but ductor has not submitted its turn
	RunAsked   JobRunState = "asked"   // ductor has submitted the turn
	RunDone    JobRunState = "done"
	RunFailed  JobRunState = "failed"
	RunAborted JobRunState = "aborted" // a user ended the turn, or removed it from the queue
	RunSkipped JobRunState = "skipped" // a policy of the job skipped the run; Reason explains it
)

// Open reports whether the run has not ended yet.
func (s JobRunState) Open() bool { return s == RunWaiting || s == RunAsked }

// JobRun is one run of a job.
type JobRun struct {
	ID        JobRunID
	Job       JobID
	Cause     JobCause
	Due       time.Time
	StandsFor int    // number of due times that this run makes up for; 1 unless ductor was not running
	Prompt    string // does not change once the run is stored
	Attempt   int    // number of the attempt, from 1
	NotBefore time.Time
	State     JobRunState
	Asked     time.Time // when ductor submitted the turn; zero before
	Ended     time.Time // zero while the run is open
	Result    JobRunResult
}

// Tries returns how many attempts the run has made. In a waiting run, Attempt is the number of the next attempt.
func (r JobRun) Tries() int {
	if r.State == RunWaiting {
		return r.Attempt - 1
	}
	return r.Attempt
}

// JobRunResult is the result of a run.
type JobRunResult struct {
	Text string // the answer as the chat shows it
	// Reason explains why the run failed or was skipped: a RunReason, or the failure of the turn. Explain returns it as
	// a sentence.
	Reason   string
	Changed  bool    // the answer differs from the previous one
	Notified bool    // the chat has shown the result, or never shows it
	CostUSD  float64 // cost of all attempts
}

// RunReason is a reason why a run failed or was skipped. It is stored in the database.
type RunReason string

// Values of RunReason.
const (
	ReasonMissed        RunReason = "job.missed"
	ReasonMissedMany    RunReason = "job.missed-many"
	ReasonStillOpen     RunReason = "job.still-open"
	ReasonManyWaiting   RunReason = "job.too-many-waiting" // the detail is the number of waiting runs
	ReasonQuietHours    RunReason = "job.in-quiet-hours"
	ReasonOutside       RunReason = "job.directory-outside"  // the detail is the directory
	ReasonNoDir         RunReason = "job.directory-missing"  // the detail is the directory
	ReasonReplacedDir   RunReason = "job.directory-replaced" // the detail is the directory
	ReasonBadChoice     RunReason = "job.bad-choice"         // the detail is an error message
	ReasonTurnGone      RunReason = "job.turn-gone"
	ReasonUserEnded     RunReason = "job.user-ended"
	ReasonTurnCancelled RunReason = "job.cancelled"
	ReasonCreatorGone   RunReason = "job.creator-gone" // the creator may not have jobs any more
)

// With returns the reason with a detail, as JobRunResult.Reason stores it.
func (r RunReason) With(detail string) RunReason { return r + RunReason("\n"+detail) }

// Explain returns Reason as a sentence. Older versions of ductor stored sentences, which it does not translate.
func (r JobRunResult) Explain(p lang.Printer) string {
	reason, detail, _ := strings.Cut(r.Reason, "\n")
	switch RunReason(reason) {
	case ReasonManyWaiting:
		waiting, _ := strconv.Atoi(detail) // no error is possible, because ductor wrote the number
		return p.Text("job.too-many-waiting", waiting)
	case ReasonOutside:
		return p.Text("job.directory-outside", detail)
	case ReasonNoDir:
		return p.Text("job.directory-missing", detail)
	case ReasonReplacedDir:
		return p.Text("job.directory-replaced", detail)
	case ReasonBadChoice:
		return p.Text("job.bad-choice", detail)
	}
	if key := (map[RunReason]lang.Key{
		ReasonMissed: "job.missed", ReasonMissedMany: "job.missed-many", ReasonStillOpen: "job.still-open",
		ReasonQuietHours: "job.in-quiet-hours", ReasonTurnGone: "job.turn-gone", ReasonUserEnded: "job.user-ended",
		ReasonTurnCancelled: "job.cancelled", ReasonCreatorGone: "job.creator-gone",
	})[RunReason(r.Reason)]; key != "" {
		return p.Text(key)
	}
	return r.Reason
}

const jobTurn = "job-"

// Turn returns the ID of the turn that makes the current attempt.
func (r JobRun) Turn() cli.TurnID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", r.ID, r.Attempt))
	return cli.TurnID(jobTurn + hex.EncodeToString(sum[:12]))
}

// IsJobTurn reports whether a turn belongs to a job.
func IsJobTurn(id cli.TurnID) bool { return strings.HasPrefix(string(id), jobTurn) }
