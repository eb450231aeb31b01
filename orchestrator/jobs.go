package orchestrator

import (
	"context"
	"errors"
	"time"

	"ductor/cli"
)

// JobID names something that is asked by itself: at certain times, every so often, or when a program outside calls.
type JobID string

// JobKind is what starts a job.
type JobKind string

// The kinds of job.
const (
	JobScheduled JobKind = "schedule"
	JobPulse     JobKind = "pulse" // the proactive prompt
	JobHook      JobKind = "hook"  // a webhook
)

// Job is one, as its screens in the chat show and change it. Words such as "own" are those of the configuration.
type Job struct {
	ID           JobID
	Kind         JobKind
	Configured   bool // it is written in the configuration, and changed there; it can be paused and run all the same
	Conversation ConversationID
	Person       PersonID // who wanted it
	Name         string
	Prompt       string
	Schedule     string // as it is kept; see Jobs.ReadSchedule
	Zone         string // IANA name; empty is that of the machine
	When         string // both in words; Jobs fills it in
	Paused       bool

	Session     string    // "own" or "shared"
	Agent       cli.Agent // with Model and Effort empty: as the conversation chose
	Model       cli.ModelID
	Effort      cli.Effort
	Dir         string        // absolute; empty: the conversation's
	Sandbox     string        // "docker", or empty: as the project has it
	Timeout     time.Duration // 0: that of the agent
	Rights      Rights        // of RightsOfJob
	QuietFrom   string        // "22:00"; empty with QuietTo: no quiet hours
	QuietTo     string
	QuietPolicy string // "hold" or "skip"
	Missed      string // "skip", "once" or "all"
	Overlap     string // "skip" or "queue"
	Retries     int
	Backoff     time.Duration
}

// JobStanding is a job and how it stands.
type JobStanding struct {
	Job     Job
	Next    time.Time // in the job's zone; zero for none
	Last    *JobRun   // that ended or was skipped; nil for none
	Runs    int       // that ended, skipped ones left out
	CostUSD float64   // of all of them
	Open    int       // runs that wait or run
	Same    int       // how often the result was the same since the chat was shown it
}

// JobRun is one time that a job was due, and what became of it.
type JobRun struct {
	Due       time.Time // in the job's zone, as Ended
	Ended     time.Time // zero while it is open
	State     string    // "waiting", "asked", "done", "failed", "aborted" or "skipped"
	Cause     string    // "schedule", "missed", "hand" or "hook"
	StandsFor int       // how many moments it stands for
	Attempt   int
	Changed   bool   // the answer is another than the one before
	Reason    string // a sentence: why it failed or was skipped
	CostUSD   float64
}

// Errors of Jobs that its callers tell apart.
var (
	ErrNoJob         = errors.New("no such job")
	ErrJobConfigured = errors.New("this job is in the configuration file")
	ErrJobsFull      = errors.New("there are too many")
)

// BadJob is an error in what a person wrote, said to them in a sentence.
type BadJob struct{ Why string }

func (e *BadJob) Error() string { return e.Why }

// Jobs is what people do with the jobs of a conversation. Package heartbeat implements it. What concerns a job of
// another conversation is ErrElsewhere. Safe for concurrent use; nothing here waits for an agent.
type Jobs interface {
	// Jobs lists those of a conversation, in the order they were made.
	Jobs(ctx context.Context, in ConversationID) ([]JobStanding, error)
	// Job is one of them; ErrNoJob for one that is not there.
	Job(ctx context.Context, id JobID, in ConversationID) (JobStanding, error)
	// JobRuns lists the last runs of a job, newest first.
	JobRuns(ctx context.Context, id JobID, in ConversationID, limit int) ([]JobRun, error)

	// ReadJob splits a request into when and what, and gives a job of it with everything else left to its default.
	// *BadJob says what is not understood, with examples.
	ReadJob(text string) (Job, error)
	// ReadSchedule reads when a job is due, in words or as a cron line, in the zone it names or else in the one that is
	// given; *BadJob as with ReadJob.
	ReadSchedule(text, zone string) (schedule, named string, err error)
	// CheckJob says how a job would stand that is not stored, with its defaults filled in; *BadJob for one that
	// cannot be.
	CheckJob(j Job) (JobStanding, error)

	// AddJob stores a job under the id it has. One of this id that is there already is left alone, and no error.
	// *BadJob for one that cannot be, ErrJobsFull for one too many.
	AddJob(ctx context.Context, j Job) (JobStanding, error)
	// EditJob changes a job by change, and works out anew when it is due. *BadJob, and nothing changed, for what
	// cannot be; nor where change fails, with its error; ErrJobConfigured.
	EditJob(ctx context.Context, id JobID, by Press, change func(*Job) error) (JobStanding, error)
	// PauseJob has a job not run until ResumeJob.
	PauseJob(ctx context.Context, id JobID, by Press) (JobStanding, error)
	// ResumeJob has a job run again, from its next moment on.
	ResumeJob(ctx context.Context, id JobID, by Press) (JobStanding, error)
	// RunJob has a job run now, once for each key: ErrRepeated for one that was used. ErrJobsFull when too many runs
	// wait, *BadJob for a webhook that was never called.
	RunJob(ctx context.Context, id JobID, by Press, key string) (JobStanding, error)
	// DeleteJob forgets a job and its runs; ErrJobConfigured. What runs goes on.
	DeleteJob(ctx context.Context, id JobID, by Press) error
}

// Directory says whether a job may work in a directory, and gives it as an absolute path; ErrOutsideRoot, ErrNotADir.
func (o *Orchestrator) Directory(path string) (string, error) { return o.resolveDir(o.opts.Dir, path) }
