package heartbeat

import (
	"cmp"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"ductor/cli"
	"ductor/heartbeat/schedule"
	"ductor/lang"
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
	// MostFinished is how many finished jobs of a user the scheduler keeps, in all conversations together. It deletes
	// older ones.
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

// validate checks a job whose defaults are set. Its errors contain a *lang.Error for the user who wrote the job.
func validate(j orchestrator.Job) error {
	switch {
	case j.Conversation.Chat == 0:
		return invalid(func(p lang.Printer) string { return p.Text("job.no-chat") })
	case strings.TrimSpace(j.Prompt) == "" && j.Kind != orchestrator.JobHook:
		return invalid(func(p lang.Printer) string { return p.Text("job.empty-prompt") })
	case len(j.Prompt) > maxPrompt:
		return invalid(func(p lang.Printer) string { return p.Text("job.long-prompt", maxPrompt) })
	case len(j.Name) > maxName || strings.ContainsFunc(j.Name, unicode.IsControl):
		return invalid(func(p lang.Printer) string { return p.Text("job.bad-name", maxName) })
	case j.Dir != "" && !filepath.IsAbs(j.Dir):
		return invalid(func(p lang.Printer) string { return p.Text("job.relative-directory", j.Dir) })
	case j.Dir != "" && j.Session == orchestrator.SharedSession:
		return invalid(func(p lang.Printer) string { return p.Text("job.shared-directory") })
	case j.Retries < 0 || j.Retries > 10:
		return badValue("retries", strconv.Itoa(j.Retries), "0–10")
	case j.Backoff < time.Second || j.Backoff > MaxBackoff:
		return badValue("backoff", j.Backoff.String(), "1s–6h")
	case j.Kind == orchestrator.JobHook && j.QuietPolicy == orchestrator.QuietSkip:
		return invalid(func(p lang.Printer) string { return p.Text("job.skipped-webhook") })
	case j.Timeout < 0:
		return badValue("timeout", j.Timeout.String(), "0–168h")
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
		{"sandbox", cmp.Or(j.Sandbox, "off"), []string{"off", "docker"}},
	} {
		if !slices.Contains(word.of, word.is) {
			return badValue(word.what, word.is, word.of...)
		}
	}
	if !j.Quiet() {
		return nil
	}
	if j.QuietPolicy != orchestrator.QuietHold && j.QuietPolicy != orchestrator.QuietSkip {
		return badValue("quiet_policy", j.QuietPolicy, orchestrator.QuietHold, orchestrator.QuietSkip)
	}
	return schedule.CheckQuiet(j.QuietFrom, j.QuietTo)
}

func invalid(explain func(p lang.Printer) string) error { return &lang.Error{Explain: explain} }

// badValue returns an error for a value that no button of the form sets.
func badValue(name, value string, allowed ...string) error {
	return invalid(func(p lang.Printer) string {
		return p.Text("job.bad-value", name, value, p.List(allowed...))
	})
}
