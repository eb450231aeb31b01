package heartbeat

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"ductor/cli"
)

// RunID names one run of a job. It is made of what started it, so that the same cause gives the same id, however
// often a crash makes us come by.
type RunID string

// Cause is what started a run.
type Cause string

// The causes of a run.
const (
	CauseSchedule Cause = "schedule"
	CauseMissed   Cause = "missed" // it stands for runs that were due while nobody was there
	CauseHand     Cause = "hand"   // a person pressed Run now
	CauseHook     Cause = "hook"
)

// RunState is where a run stands. It moves down this list, and from asked back to waiting for a retry.
type RunState string

// The states of a run.
const (
	RunWaiting RunState = "waiting" // recorded, and its turn is perhaps asked for
	RunAsked   RunState = "asked"   // the orchestrator has its turn
	RunDone    RunState = "done"
	RunFailed  RunState = "failed"
	RunAborted RunState = "aborted" // a person ended it, or took it out of the queue
	RunSkipped RunState = "skipped" // by a policy; Reason says which
)

// Open says whether something is still to come of a run.
func (s RunState) Open() bool { return s == RunWaiting || s == RunAsked }

// Run is one time that a job was due, and what became of it.
type Run struct {
	ID        RunID
	Job       JobID
	Cause     Cause
	Due       time.Time
	StandsFor int    // how many moments it stands for; 1 unless some were missed
	Prompt    string // what is asked, fixed as it became due
	Attempt   int    // from 1
	NotBefore time.Time
	State     RunState
	Asked     time.Time // zero until its turn was asked for
	Ended     time.Time // zero while it is open
	Text      string    // the answer, shortened
	Reason    string    // a sentence: why it failed or was skipped
	Changed   bool      // the answer is another than the last time
	Told      bool      // the chat has its result, or needs none
	CostUSD   float64   // of all attempts
}

// jobTurn begins the id of every turn of a job.
const jobTurn = "job-"

// Turn is the id of the turn of its present attempt.
func (r Run) Turn() cli.TurnID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", r.ID, r.Attempt))
	return cli.TurnID(jobTurn + hex.EncodeToString(sum[:12]))
}

// IsJobTurn says whether a turn was started by this package.
func IsJobTurn(id cli.TurnID) bool { return strings.HasPrefix(string(id), jobTurn) }

// dueID names the run of a moment; see RunID.
func dueID(job JobID, due time.Time) RunID {
	return RunID(fmt.Sprintf("%s@%s", job, due.UTC().Format(time.RFC3339)))
}

func handID(job JobID, key string) RunID { return RunID(fmt.Sprintf("%s!%s", job, key)) }
