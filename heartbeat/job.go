package heartbeat

import (
	"cmp"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"ductor/cli"
	"ductor/orchestrator"
)

// JobID names a job for good. One from the configuration is always called the same.
type JobID string

// Kind is what starts a job.
type Kind string

// The kinds of job.
const (
	KindSchedule Kind = "schedule" // its Schedule
	KindPulse    Kind = "pulse"    // its Schedule, as the proactive prompt: never while a turn uses its session
	KindHook     Kind = "hook"     // a webhook; it has no Schedule
)

// Source is where a job was written down, and so where it can be changed.
type Source string

// The sources of jobs.
const (
	FromChat   Source = "chat"
	FromConfig Source = "config"
)

// SessionMode says in which session a job's turns run.
type SessionMode string

// The session modes.
const (
	OwnSession    SessionMode = "own"    // one of the job's own, which goes on from run to run
	SharedSession SessionMode = "shared" // the current one of the conversation
)

// Missed is what becomes of runs that were due while ductor or its machine was not there.
type Missed string

// What can become of missed runs. MissedOnce is the default.
const (
	MissedSkip Missed = "skip" // nothing
	MissedOnce Missed = "once" // one run stands for all of them
	MissedAll  Missed = "all"  // each is run, one after the other; of more than MostMissed the newest
)

// MostMissed bounds how many missed runs are made up for.
const MostMissed = 100

// Overlap is what becomes of a run that is due while an earlier one of its job is not over.
type Overlap string

// What can become of an overlapping run. OverlapSkip is the default.
const (
	OverlapSkip  Overlap = "skip"
	OverlapQueue Overlap = "queue" // it waits; of more than MostQueued the newest are skipped
)

// MostQueued bounds the runs of a job that wait for each other.
const MostQueued = 20

// Job is something to be asked again and again, or once.
type Job struct {
	ID           JobID
	Name         string
	Kind         Kind
	Source       Source
	Conversation orchestrator.ConversationID // where it runs and where its results are shown
	Person       orchestrator.PersonID       // who wanted it
	Prompt       string

	Schedule string // see ParseSchedule
	Zone     string // IANA name; empty is the house's
	Created  time.Time
	Enabled  bool

	Session SessionMode
	Agent   cli.Agent // with Model and Effort empty: as the conversation chose
	Model   cli.ModelID
	Effort  cli.Effort
	Dir     string        // absolute; empty: the conversation's
	Sandbox string        // "off" or "docker"; empty: the policy of the project
	Timeout time.Duration // 0: the house's
	Rights  orchestrator.Rights

	Quiet   Quiet
	Missed  Missed
	Overlap Overlap
	Retries int           // how often a failed run is tried again; 0 to 10
	Backoff time.Duration // before the first retry; it doubles, up to MostBackoff
	OKWord  string        // an answer that is only this word is shown to nobody
}

// MostBackoff bounds the wait before a retry.
const MostBackoff = 6 * time.Hour

// Bounds of what a person may write.
const (
	nameMost   = 64
	promptMost = 64 << 10
)

// filled sets what was left open to its default.
func (j Job) filled() Job {
	j.Name = strings.Join(strings.Fields(j.Name), " ")
	if j.Name == "" {
		j.Name = cli.OneLine(j.Prompt, 40)
	}
	j.Kind, j.Source = cmp.Or(j.Kind, KindSchedule), cmp.Or(j.Source, FromChat)
	j.Session, j.Missed, j.Overlap = cmp.Or(j.Session, OwnSession), cmp.Or(j.Missed, MissedOnce), cmp.Or(j.Overlap, OverlapSkip)
	j.Backoff = cmp.Or(j.Backoff, time.Minute)
	j.Rights.Of = orchestrator.RightsOfJob
	if j.Quiet.set() {
		j.Quiet.Policy = cmp.Or(j.Quiet.Policy, QuietHold)
	}
	return j
}

// equal says whether two filled jobs are the same.
func (j Job) equal(other Job) bool {
	same := j.Rights.Equal(other.Rights)
	other.Rights = j.Rights
	return same && reflect.DeepEqual(j, other)
}

// check says what is wrong with a filled job, in words for whoever wrote it.
func (j Job) check() error {
	switch {
	case j.Conversation.Chat == 0:
		return fmt.Errorf("a job needs a chat to answer in")
	case strings.TrimSpace(j.Prompt) == "" && j.Kind != KindHook:
		return fmt.Errorf("a job needs a prompt")
	case len(j.Prompt) > promptMost:
		return fmt.Errorf("the prompt is longer than %d bytes", promptMost)
	case len(j.Name) > nameMost || strings.ContainsFunc(j.Name, unicode.IsControl):
		return fmt.Errorf("a name is one line of at most %d bytes", nameMost)
	case j.Dir != "" && !filepath.IsAbs(j.Dir):
		return fmt.Errorf("the directory %q is not absolute", j.Dir)
	case j.Dir != "" && j.Session == SharedSession:
		return fmt.Errorf("a directory is for a session of the job's own: the chat's session has one already")
	case j.Retries < 0 || j.Retries > 10:
		return fmt.Errorf("retries are 0 to 10, not %d", j.Retries)
	case j.Backoff < time.Second || j.Backoff > MostBackoff:
		return fmt.Errorf("the wait before a retry is 1s to %s, not %s", MostBackoff, j.Backoff)
	case j.Kind == KindHook && j.Quiet.Policy == QuietSkip:
		return fmt.Errorf("what a webhook starts in quiet hours waits for their end; it is not skipped")
	case j.Timeout < 0:
		return fmt.Errorf("a timeout of %s is none", j.Timeout)
	}
	if err := j.Rights.Check(); err != nil {
		return err
	}
	for _, word := range []struct {
		what, is string
		of       []string
	}{
		{"kind", string(j.Kind), []string{"schedule", "pulse", "hook"}},
		{"source", string(j.Source), []string{"chat", "config"}},
		{"session", string(j.Session), []string{"own", "shared"}},
		{"missed", string(j.Missed), []string{"skip", "once", "all"}},
		{"overlap", string(j.Overlap), []string{"skip", "queue"}},
		{"sandbox", j.Sandbox, []string{"", "off", "docker"}},
	} {
		if !slices.Contains(word.of, word.is) {
			return fmt.Errorf("%s is %s, not %q", word.what, orList(word.of), word.is)
		}
	}
	return j.Quiet.check()
}

func orList(words []string) string {
	var quoted []string
	for _, w := range words {
		if w != "" {
			quoted = append(quoted, fmt.Sprintf("%q", w))
		}
	}
	return strings.Join(quoted, " or ")
}
