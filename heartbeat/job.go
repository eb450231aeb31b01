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
	"ductor/heartbeat/schedule"
	"ductor/orchestrator"
	"ductor/orchestrator/approval"
)

// Limits of a job.
const (
	// MostMissed is the maximum number of missed runs that a job with MissedAll makes up for. The job makes up for the
	// latest missed runs.
	MostMissed = 100
	// MaxBackoff limits the pause before a retry.
	MaxBackoff = 6 * time.Hour
	// MostJobs is how many jobs users can add in a conversation. Finished jobs do not count.
	MostJobs = 50
	// MostJobsOfUser is how many jobs a user can add in all conversations together. Finished jobs do not count.
	MostJobsOfUser = 100
	// MostFinished is how many finished jobs of a user remain in all conversations together.
	MostFinished = 5

	maxName   = 64
	maxPrompt = 64 << 10
)

func withDefaults(j orchestrator.Job) orchestrator.Job {
	j.Name = strings.Join(strings.Fields(j.Name), " ")
	if j.Name == "" {
		j.Name = cli.OneLine(j.Prompt, 40)
	}
	j.When = ""
	j.Kind, j.Session = cmp.Or(j.Kind, orchestrator.JobScheduled), cmp.Or(j.Session, orchestrator.OwnSession)
	j.Missed, j.Overlap = cmp.Or(j.Missed, orchestrator.MissedOnce), cmp.Or(j.Overlap, orchestrator.OverlapSkip)
	j.Backoff = cmp.Or(j.Backoff, time.Minute)
	if j.Rights.Of != orchestrator.RightsOfPress {
		j.Rights.Of = orchestrator.RightsOfJob
	}
	if j.Quiet() {
		j.QuietPolicy = cmp.Or(j.QuietPolicy, orchestrator.QuietHold)
	}
	return j
}

func sameJob(a, b orchestrator.Job) bool {
	same := a.Rights.Equal(b.Rights)
	b.Rights = a.Rights
	return same && reflect.DeepEqual(a, b)
}

// validate checks a job whose defaults are set. Its errors are sentences for the user who wrote the job.
func validate(j orchestrator.Job) error {
	switch {
	case j.Conversation.Chat == 0:
		return fmt.Errorf("a job needs a chat to answer in")
	case strings.TrimSpace(j.Prompt) == "" && j.Kind != orchestrator.JobHook:
		return fmt.Errorf("a job needs a prompt")
	case len(j.Prompt) > maxPrompt:
		return fmt.Errorf("the prompt is longer than %d bytes", maxPrompt)
	case len(j.Name) > maxName || strings.ContainsFunc(j.Name, unicode.IsControl):
		return fmt.Errorf("a name is one line of at most %d bytes", maxName)
	case j.Dir != "" && !filepath.IsAbs(j.Dir):
		return fmt.Errorf("the directory %q is not absolute", j.Dir)
	case j.Dir != "" && j.Session == orchestrator.SharedSession:
		return fmt.Errorf("a directory is for a session of the job's own: the chat's session has one already")
	case j.Retries < 0 || j.Retries > 10:
		return fmt.Errorf("retries are 0 to 10, not %d", j.Retries)
	case j.Backoff < time.Second || j.Backoff > MaxBackoff:
		return fmt.Errorf("the wait before a retry is 1s to %s, not %s", MaxBackoff, j.Backoff)
	case j.Kind == orchestrator.JobHook && j.QuietPolicy == orchestrator.QuietSkip:
		return fmt.Errorf("what a webhook starts in quiet hours waits for their end; it is not skipped")
	case j.Timeout < 0:
		return fmt.Errorf("a timeout of %s is none", j.Timeout)
	}
	if err := approval.CheckRights(j.Rights); err != nil {
		return err
	}
	for _, word := range []struct {
		what, is string
		of       []string
	}{
		{"kind", string(j.Kind), []string{"schedule", "pulse", "hook"}},
		{"session", j.Session, []string{"own", "shared"}},
		{"missed", j.Missed, []string{"skip", "once", "all"}},
		{"overlap", j.Overlap, []string{"skip", "queue"}},
		{"sandbox", j.Sandbox, []string{"", "off", "docker"}},
	} {
		if !slices.Contains(word.of, word.is) {
			return fmt.Errorf("%s is %s, not %q", word.what, orList(word.of), word.is)
		}
	}
	if !j.Quiet() {
		return nil
	}
	if j.QuietPolicy != orchestrator.QuietHold && j.QuietPolicy != orchestrator.QuietSkip {
		return fmt.Errorf("the quiet policy is \"hold\" or \"skip\", not %q", j.QuietPolicy)
	}
	return schedule.CheckQuiet(j.QuietFrom, j.QuietTo)
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
