package heartbeat

import (
	"cmp"
	"fmt"
	"time"

	"ductor/heartbeat/schedule"
	"ductor/orchestrator"
)

// DefaultOKWord is the answer to a proactive prompt when the user needs to know nothing.
const DefaultOKWord = "HEARTBEAT_OK"

// Proactive completes a job for Scheduler.Sync to a proactive prompt: at an interval an agent is asked whether the user
// should know anything. Its OK word is not shown, it waits while a turn uses its session, and missed runs are skipped.
func Proactive(j orchestrator.Job, interval time.Duration) orchestrator.Job {
	j.OKWord = cmp.Or(j.OKWord, DefaultOKWord)
	j.Kind, j.Schedule = orchestrator.JobHeartbeat, "every "+schedule.FormatInterval(interval)
	j.Prompt = fmt.Sprintf("%s\n\nIf there is nothing that needs a person's attention, answer only: %s", j.Prompt, j.OKWord)
	j.Missed, j.Overlap = orchestrator.MissedSkip, orchestrator.OverlapSkip
	return j
}
